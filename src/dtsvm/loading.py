"""Names that load when they are first used: what a program does not use, it does not wait for."""

import importlib
import sys
from collections.abc import Callable, Mapping


def on_demand(
    package: str, where: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Give a package's `__getattr__` and `__dir__`, for names that live in the modules said.

    Parameters
    ----------
    package : str
        The package that offers the names.
    where : mapping
        The module of each name.

    Returns
    -------
    (callable, callable)
        To be assigned to `__getattr__` and `__dir__` of the package.

    Examples
    --------
    >>> find, names = on_demand("dtsvm.loading", {"Fraction": "fractions"})
    >>> find("Fraction")(1, 3)
    Fraction(1, 3)
    >>> "Fraction" in names()
    True
    """
    home = sys.modules[package]

    def find(name: str) -> object:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(where[name]), name)
        setattr(home, name, value)
        return value

    def names() -> list[str]:
        return sorted({*where, *vars(home)})

    return find, names
