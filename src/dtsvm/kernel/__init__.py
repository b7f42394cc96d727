"""Everything compiled, and nothing else: the best builds that this machine can run."""

from dtsvm.kernel.variants import VARIANT, boxes, compiled, load

__all__ = ["VARIANT", "boxes", "compiled", "load"]
