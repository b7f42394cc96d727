"""Columns to features, agreed by sums over the network: fill in, scale, one-hot."""

from dtsvm.prepare.agree import agreeing, run_alone, run_together
from dtsvm.prepare.encode import Encoded, encode, recode
from dtsvm.prepare.plan import Feature, Plan, apply_plan
from dtsvm.prepare.preparation import Preparation

__all__ = [
    "Encoded",
    "Feature",
    "Plan",
    "Preparation",
    "agreeing",
    "apply_plan",
    "encode",
    "recode",
    "run_alone",
    "run_together",
]
