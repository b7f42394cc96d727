"""Choosing C, coupling and company by validation inside the network, from sums that travel."""

from dtsvm.select.at_node import Outcome, choosing_at_node
from dtsvm.select.base_rates import expected_rates, label_weights
from dtsvm.select.bias import best_bias, finding_bias
from dtsvm.select.candidates import (
    ALL,
    ALONE,
    LEVELS,
    SMALL,
    Candidate,
    Family,
    candidates,
    read_families,
    reference_of,
)
from dtsvm.select.choice import Choice, Rate, describe, difference, rate
from dtsvm.select.choosing import Chosen, choose, choosing
from dtsvm.select.evidence import losses, slopes
from dtsvm.select.folds import agent_name, read_folds, split
from dtsvm.select.held import Held, Job, Lane, first_alike, moments, out_of_fold, products, unit_of
from dtsvm.select.lift import Lift, compact
from dtsvm.select.margins import Margins, read_scales, read_table, scale_sums, table
from dtsvm.select.posterior import weights
from dtsvm.select.sides import sides
from dtsvm.select.stretch import stretching
from dtsvm.select.suspects import suspects
from dtsvm.select.weighing import Weighed, weigh, weighing

__all__ = [
    "ALL",
    "ALONE",
    "LEVELS",
    "SMALL",
    "Candidate",
    "Choice",
    "Chosen",
    "Family",
    "Held",
    "Job",
    "Lane",
    "Lift",
    "Margins",
    "Outcome",
    "Rate",
    "Weighed",
    "agent_name",
    "best_bias",
    "candidates",
    "choose",
    "choosing",
    "choosing_at_node",
    "compact",
    "describe",
    "difference",
    "expected_rates",
    "finding_bias",
    "first_alike",
    "label_weights",
    "losses",
    "moments",
    "out_of_fold",
    "products",
    "rate",
    "read_families",
    "read_folds",
    "read_scales",
    "read_table",
    "reference_of",
    "scale_sums",
    "sides",
    "slopes",
    "split",
    "stretching",
    "suspects",
    "table",
    "unit_of",
    "weigh",
    "weighing",
    "weights",
]
