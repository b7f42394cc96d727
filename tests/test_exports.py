import importlib
import inspect
import pkgutil
import types

import pytest

import dtsvm

PACKAGES = ["dtsvm", "dtsvm.data", "dtsvm.prepare", "dtsvm.kernel", "dtsvm.problem", "dtsvm.rounds",
            "dtsvm.runtime", "dtsvm.svm"]  # fmt: skip


def visible(module):
    for name in module.__all__:
        getattr(module, name)  # what is loaded when it is first used
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (name in module.__all__ or not isinstance(value, types.ModuleType))
    )


@pytest.mark.parametrize("name", PACKAGES)
def test_what_is_visible_is_what_is_exported(name):
    module = importlib.import_module(name)
    assert sorted(module.__all__) == visible(module)


def test_every_public_name_has_a_docstring_and_a_runnable_example():
    for name in dtsvm.__all__:
        doc = inspect.getdoc(getattr(dtsvm, name))
        assert doc, name
        assert ">>> " in doc, name


def test_every_module_says_its_place_in_one_line():
    for found in pkgutil.walk_packages(dtsvm.__path__, "dtsvm."):
        doc = importlib.import_module(found.name).__doc__
        assert doc, found.name
        assert doc.splitlines()[0].endswith((".", ":")), found.name
