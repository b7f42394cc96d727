"""Functions that fit on a screen, modules that fit in a head: measured, so that it stays so."""

import ast
from pathlib import Path

import pytest

import dtsvm

ROOT = Path(dtsvm.__file__).parent
MODULES = sorted(path for path in ROOT.rglob("*.py") if not path.name.endswith("_pb2.py"))


def functions():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def code_lines(node):
    """Lines of a function without its docstring: what a reader has to keep in mind."""
    first = node.body[0]
    is_said = isinstance(first, ast.Expr) and isinstance(
        getattr(first, "value", None), ast.Constant
    )
    said = first.end_lineno - first.lineno + 1 if is_said else 0
    return node.end_lineno - node.lineno + 1 - said


def n_parameters(node):
    given = node.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def test_nine_functions_of_ten_have_at_most_22_lines_and_none_more_than_60():
    lengths = sorted((code_lines(node), path.name, node.name) for path, node in functions())
    assert lengths[int(0.9 * len(lengths))][0] <= 22
    assert lengths[-1][0] <= 60, lengths[-3:]


def test_no_function_takes_more_than_eight_parameters():
    """But those whose parameters are what a user may set, by name: they are the documentation."""
    many = [
        (n_parameters(node), f"{path.relative_to(ROOT)}:{node.name}")
        for path, node in functions()
        if n_parameters(node) > 8 and not _is_set_by_name(path, node)
    ]
    assert not many


def _is_set_by_name(path, node):
    return "ui" in path.parts or node.name == "__init__" or len(node.args.args) <= 1


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_outside_the_kernel_has_at_most_400_lines(path):
    if path.parent.name != "kernel":
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
