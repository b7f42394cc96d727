"""The folders' order is the order of the alphabet: each imports only what stands before it."""

import ast
from pathlib import Path

import pytest

import dtsvm

ROOT = Path(dtsvm.__file__).parent
ORDER = ["errors", "loading", "data", "kernel", "prepare", "problem", "rounds", "runtime", "select",
         "svm", "trials", "ui"]  # fmt: skip


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def modules(folder):
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", ORDER[2:])
def test_a_folder_imports_only_folders_before_it(folder):
    allowed = ORDER[: ORDER.index(folder) + 1]
    for path in modules(folder):
        for name in imported(path):
            if name.startswith("dtsvm."):
                assert name.split(".")[1] in allowed, f"{path.name} imports {name}"


@pytest.mark.parametrize("folder", ["kernel", "problem", "rounds", "select"])
def test_the_mathematics_has_no_sockets_clock_printing_or_hidden_randomness(folder):
    banned = {
        "socket",
        "time",
        "random",
        "logging",
        "asyncio",
        "grpc",
        "threading",
        "rich",
        "click",
    }
    for path in modules(folder):
        assert not banned & {name.split(".")[0] for name in imported(path)}, path.name
        assert "print(" not in path.read_text()
        assert "default_rng()" not in path.read_text()


ALLOWED_IN_PROBLEM = {"numpy", "scipy", "dtsvm", "networkx", "__future__"} | {
    "collections", "dataclasses", "functools", "numbers", "typing"
}  # fmt: skip


def test_problem_needs_numpy_and_scipy_only():
    for path in modules("problem"):
        for name in imported(path):
            top = name.split(".")[0]
            assert top in ALLOWED_IN_PROBLEM, f"{path.name}: {name}"


def test_no_folder_has_a_name_that_says_nothing():
    banned = {"utils", "util", "common", "helpers", "core", "manager", "misc"}
    assert not banned & {path.stem for path in ROOT.rglob("*.py")}
    assert not banned & {path.name for path in ROOT.rglob("*") if path.is_dir()}
