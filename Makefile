# Everything a fresh machine needs: Python >= 3.11, git, make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test check bench clean

help:  ## What can be done here
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

demo: $(READY)  ## Every experiment of the paper on the bundled digits, a few repeats, and a report
	$(BIN)/dtsvm reproduce all --quick --out report

check: $(READY)  ## Lint and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: check  ## The whole check: lint, types, tests
	$(BIN)/python -m pytest -q -n auto --ignore=tests/runtime/agent
	$(BIN)/python -m pytest -q tests/runtime/agent  # real processes: one test at a time

bench: $(READY)  ## Us against rivals, as ratios, into docs/benchmarks.md
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	$(BIN)/python -m benchmarks

clean:  ## Remove the environment and everything generated
	rm -rf $(VENV) report .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src -name __pycache__ -prune -exec rm -rf {} +
