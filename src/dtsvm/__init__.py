"""Related linear classifiers, trained together over a network that has no centre."""

from dtsvm.problem import Network
from dtsvm.svm import CSVM, CTSVM, DSVM, DTSVM, Session

__all__ = ["CSVM", "CTSVM", "DSVM", "DTSVM", "Network", "Session"]
__version__ = "0.1.0"
