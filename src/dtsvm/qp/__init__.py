"""One agent alone: the box QP and its compiled solver."""

from dtsvm.qp.box import dot, pull, solve, squared_norms, tally

__all__ = ["dot", "pull", "solve", "squared_norms", "tally"]
