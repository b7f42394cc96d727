"""Which builds of `rounds` and `boxes` run: the best ones that this machine can run.

`VARIANT` says which: "avx2", "baseline", or "python" where nothing was compiled. All three give the
same bits. `DTSVM_KERNEL` in the environment asks for another one, or names the file of a build.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from multiprocessing import parent_process
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from dtsvm.errors import SlowKernelWarning

__all__ = ["VARIANT", "boxes", "compiled", "load"]

SLOW = (
    "dtsvm runs uncompiled, some 500 times slower: no C compiler was found when it was installed. "
    "Install one (such as gcc, with Python's headers), then install dtsvm again."
)


def load(variant: str = "", part: str = "rounds") -> tuple[ModuleType, str]:
    """Return the module of a variant and the variant's name; the best one by default.

    Of a build that is named by its file, other parts lie beside it.

    Examples
    --------
    >>> from dtsvm.kernel import load
    >>> load()[1] in ("avx2", "baseline", "python")
    True
    """
    if variant == "python":
        return _from_file(Path(__file__).with_name(f"{part}.py"), f"{part}_plain"), "python"
    if variant.endswith((".so", ".pyd")):
        path = Path(variant)
        return _from_file(path.with_name(path.name.replace("rounds", part)), part), variant
    module = importlib.import_module(f"dtsvm.kernel.{part}")
    if (module.__file__ or ".py").endswith(".py"):
        return module, "python"
    if part == "rounds" and variant != "baseline" and module.has_avx2():
        try:
            return importlib.import_module("dtsvm.kernel.rounds_avx2"), "avx2"
        except ImportError:
            return module, "baseline"
    return module, "baseline"


def _from_file(path: Path, name: str) -> ModuleType:
    """Return a build that lies elsewhere, or `rounds.py` as it stands beside what is compiled."""
    spec = importlib.util.spec_from_file_location(f"dtsvm.kernel.{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


compiled, VARIANT = load(os.environ.get("DTSVM_KERNEL", ""))
if TYPE_CHECKING:
    from dtsvm.kernel import boxes
else:
    boxes, _ = load(os.environ.get("DTSVM_KERNEL", ""), "boxes")
is_asked_for = os.environ.get("DTSVM_KERNEL") == "python"
if VARIANT == "python" and not is_asked_for and parent_process() is None:  # said once, not by all
    warnings.warn(SLOW, SlowKernelWarning, stacklevel=2)
