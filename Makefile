# Everything a fresh machine needs: Python >= 3.11 with headers, git, make, a C compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test check tests variants baseline checked plain docs bench clean

help:  ## What can be done here
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

# Hundreds of processes import the same modules: where Python was told to keep no bytecode, each of
# them would compile scipy and scikit-learn anew.
unexport PYTHONDONTWRITEBYTECODE

# What is imported is compiled then: most of what is installed never is.
PIP := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# What builds the kernel stays installed: it is built anew when its source has changed.
$(READY): pyproject.toml meson.build meson_options.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) "meson-python>=0.16" "cython>=3.1" ninja
	$(PIP) --no-build-isolation -e ".[dev]"
	touch $@

demo: $(READY)  ## Every experiment of the paper on the bundled digits, and a report
	$(BIN)/dtsvm reproduce all --quick --out report

check: $(READY)  ## Lint and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

PYTEST := $(BIN)/python -m pytest -q

# What keeps one core busy runs beside what keeps another busy; then the tests have all there are.
test: $(READY)  ## The whole check: lint, types, tests
	$(MAKE) -j 2 --output-sync check variants
	$(MAKE) tests

# Real processes, sockets and browsers depend on the machine's pace: what fails is tried once more, alone.
tests: $(READY)  ## Only the tests
	$(PYTEST) -n auto --dist worksteal || $(PYTEST) --last-failed --last-failed-no-failures none

# Several of these may run at once: none has a say in what failed last.
KERNEL_PYTEST := $(PYTEST) -p no:cacheprovider
KERNEL_TESTS := $(patsubst %,tests/rounds/test_%.py,blocks paper rows kinds) tests/kernel
CHECKED := build/checked

variants: baseline checked plain  ## A fast part of the tests on every other build of the kernel

baseline: $(READY)
	DTSVM_KERNEL=baseline $(KERNEL_PYTEST) $(KERNEL_TESTS)

checked: $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" meson setup --reconfigure -Dbounds_checks=true $(CHECKED) > /dev/null
	PATH="$(CURDIR)/$(BIN):$$PATH" meson compile -C $(CHECKED) > /dev/null
	DTSVM_KERNEL=$$(ls $(CURDIR)/$(CHECKED)/rounds.*.so) $(KERNEL_PYTEST) $(KERNEL_TESTS)

plain: $(READY)
	DTSVM_KERNEL=python DTSVM_EXAMPLES=0.2 $(KERNEL_PYTEST) tests/kernel tests/rounds/test_rows.py tests/rounds/test_blocks.py

docs: $(READY)  ## The documentation: built offline, every example run, every link checked
	$(PIP) --no-build-isolation -e ".[docs]"
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	$(BIN)/python scripts/check_links.py docs/_build/html

bench: $(READY)  ## Us against rivals, as ratios, into docs/benchmarks.md
	$(PIP) --no-build-isolation -e ".[bench]"
	$(BIN)/python -m benchmarks

clean:  ## Remove the environment and everything generated
	rm -rf $(VENV) build report docs/_build docs/gallery docs/commands.rst
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src -name __pycache__ -prune -exec rm -rf {} +
