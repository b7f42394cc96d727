"""The face: scikit-learn estimators and the live session."""

import typing

from dtsvm import loading

if typing.TYPE_CHECKING:
    from dtsvm.svm.classifier import LinearClassifier
    from dtsvm.svm.cv import DTSVMCV
    from dtsvm.svm.estimators import DSVM, DTSVM
    from dtsvm.svm.exporting import export
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

__getattr__, __dir__ = loading.on_demand(
    __name__,
    {
        "LinearClassifier": "dtsvm.svm.classifier",
        "DTSVMCV": "dtsvm.svm.cv",
        "DSVM": "dtsvm.svm.estimators",
        "DTSVM": "dtsvm.svm.estimators",
        "export": "dtsvm.svm.exporting",
        "Progress": "dtsvm.svm.lanes",
        "load_model": "dtsvm.svm.model_file",
        "save_model": "dtsvm.svm.model_file",
        "CSVM": "dtsvm.svm.pooled",
        "CTSVM": "dtsvm.svm.pooled",
        "Event": "dtsvm.svm.presence",
        "Risk": "dtsvm.svm.presence",
        "Session": "dtsvm.svm.session",
    },
)
