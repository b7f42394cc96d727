"""One agent alone: the box QP and its compiled solver."""

from dtsvm.qp.box import dot, pull, solve, squared_norms, tally
from dtsvm.qp.machine import borrowed, fetch

__all__ = ["borrowed", "dot", "fetch", "pull", "solve", "squared_norms", "tally"]
