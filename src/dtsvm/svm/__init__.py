"""The face: scikit-learn estimators and the live session."""

from dtsvm.svm.classifier import LinearClassifier
from dtsvm.svm.cv import DTSVMCV
from dtsvm.svm.estimators import DSVM, DTSVM
from dtsvm.svm.export import export
from dtsvm.svm.lanes import Progress
from dtsvm.svm.model_file import load_model, save_model
from dtsvm.svm.pooled import CSVM, CTSVM
from dtsvm.svm.presence import Event, Risk
from dtsvm.svm.session import Session

__all__ = [
    "CSVM",
    "CTSVM",
    "DSVM",
    "DTSVM",
    "DTSVMCV",
    "Event",
    "LinearClassifier",
    "Progress",
    "Risk",
    "Session",
    "export",
    "load_model",
    "save_model",
]
