"""Which build of `rounds` runs: the best one that this machine can run.

`VARIANT` says which: "avx2", "baseline", or "python" where nothing was compiled. All three give the
same bits. `DTSVM_KERNEL` in the environment asks for another one.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from pathlib import Path
from types import ModuleType

from dtsvm.errors import SlowKernelWarning

__all__ = ["VARIANT", "compiled", "load"]

SLOW = (
    "dtsvm runs uncompiled, some 500 times slower: no C compiler was found when it was installed. "
    "Install one (such as gcc, with Python's headers), then install dtsvm again."
)


def load(variant: str = "") -> tuple[ModuleType, str]:
    """Return the module of a variant and the variant's name; the best one by default.

    Examples
    --------
    >>> from dtsvm.kernel import load
    >>> load()[1] in ("avx2", "baseline", "python")
    True
    """
    if variant == "python":
        return _plain(), "python"
    module = importlib.import_module("dtsvm.kernel.rounds")
    if (module.__file__ or ".py").endswith(".py"):
        return module, "python"
    if variant != "baseline" and module.has_avx2():
        try:
            return importlib.import_module("dtsvm.kernel.rounds_avx2"), "avx2"
        except ImportError:
            return module, "baseline"
    return module, "baseline"


def _plain() -> ModuleType:
    """Return `rounds.py` as it stands, beside whatever is compiled."""
    path = Path(__file__).with_name("rounds.py")
    spec = importlib.util.spec_from_file_location("dtsvm.kernel.rounds_plain", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


compiled, VARIANT = load(os.environ.get("DTSVM_KERNEL", ""))
if VARIANT == "python" and os.environ.get("DTSVM_KERNEL") != "python":
    warnings.warn(SLOW, SlowKernelWarning, stacklevel=2)
