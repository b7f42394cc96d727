"""What plain Python needs of the `cython` module, for machines that do not have it."""

from contextlib import nullcontext

__all__ = ["compiled", "nogil"]

compiled = False
nogil = nullcontext()
