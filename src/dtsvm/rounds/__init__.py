"""Agents agreeing: the step, membership, residuals, certificate and history."""

from dtsvm.rounds.certify import average, certificate
from dtsvm.rounds.history import HISTORY, History, Info, Status
from dtsvm.rounds.membership import Membership
from dtsvm.rounds.state import State
from dtsvm.rounds.step import exchange, local_step

__all__ = [
    "HISTORY",
    "History",
    "Info",
    "Membership",
    "State",
    "Status",
    "average",
    "certificate",
    "exchange",
    "local_step",
]
