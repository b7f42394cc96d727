"""Everything compiled, and nothing else: the best build of `rounds` that this machine can run."""

from dtsvm.kernel.variants import VARIANT, compiled, load

__all__ = ["VARIANT", "compiled", "load"]
