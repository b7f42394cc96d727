"""Related linear classifiers, trained together over a network that has no centre."""

import importlib
import typing

if typing.TYPE_CHECKING:
    from dtsvm.prepare import Preparation
    from dtsvm.problem import Model, Network
    from dtsvm.svm import CSVM, CTSVM, DSVM, DTSVM, DTSVMCV, Session, load_model, save_model
    from dtsvm.svm.export import export as export

__all__ = [
    "CSVM",
    "CTSVM",
    "DSVM",
    "DTSVM",
    "DTSVMCV",
    "Model",
    "Network",
    "Preparation",
    "Session",
    "export",
    "load_model",
    "save_model",
]
__version__ = "0.1.0"

_ELSEWHERE = {"Preparation": "dtsvm.prepare", "Model": "dtsvm.problem", "Network": "dtsvm.problem"}


def __getattr__(name: str) -> typing.Any:
    """Load a name when it is first used: `dtsvm --version` need not wait for scikit-learn."""
    if name not in __all__:
        raise AttributeError(f"module 'dtsvm' has no attribute {name!r}")
    value = getattr(importlib.import_module(_ELSEWHERE.get(name, "dtsvm.svm")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
