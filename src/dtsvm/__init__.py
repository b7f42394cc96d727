"""Related linear classifiers, trained together over a network that has no centre."""

from dtsvm.prepare import Preparation
from dtsvm.problem import Model, Network
from dtsvm.svm import CSVM, CTSVM, DSVM, DTSVM, DTSVMCV, Session, export, load_model, save_model

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
