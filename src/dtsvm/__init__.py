"""Related linear classifiers, trained together over a network that has no centre."""

from dtsvm.problem import Network

__all__ = ["Network"]
