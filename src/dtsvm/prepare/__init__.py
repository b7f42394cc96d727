"""Columns to features, agreed by sums over the network: fill in, scale, one-hot."""

import typing

from dtsvm import loading
from dtsvm.prepare.agree import agreeing, run_alone, run_together
from dtsvm.prepare.encode import Encoded, encode, recode
from dtsvm.prepare.plan import Feature, Plan, apply_plan
from dtsvm.prepare.prepared import Prepared

if typing.TYPE_CHECKING:
    from dtsvm.prepare.preparation import Preparation

__all__ = [
    "Encoded",
    "Feature",
    "Plan",
    "Preparation",
    "Prepared",
    "agreeing",
    "apply_plan",
    "encode",
    "recode",
    "run_alone",
    "run_together",
]

# It is one of scikit-learn's, which takes a second to load; agents do without.
__getattr__, __dir__ = loading.on_demand(__name__, {"Preparation": "dtsvm.prepare.preparation"})
