"""Related linear classifiers, trained together over a network that has no centre."""

import typing

from dtsvm import loading

if typing.TYPE_CHECKING:
    from dtsvm.prepare import Preparation
    from dtsvm.problem import Model, Network
    from dtsvm.svm import CSVM, CTSVM, DSVM, DTSVM, DTSVMCV, Session, load_model, save_model
    from dtsvm.svm.exporting import export

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

__getattr__, __dir__ = loading.on_demand(
    __name__, {**dict.fromkeys(__all__, "dtsvm.svm"), **_ELSEWHERE}
)
