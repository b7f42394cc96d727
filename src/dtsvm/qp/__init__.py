"""One agent alone: the box QP and its compiled solver."""

from dtsvm.qp.box import class_sums, distance, dot, pull, solve, squared_norms, tally
from dtsvm.qp.machine import borrowed, fetch

__all__ = [
    "borrowed",
    "class_sums",
    "distance",
    "dot",
    "fetch",
    "pull",
    "solve",
    "squared_norms",
    "tally",
]
