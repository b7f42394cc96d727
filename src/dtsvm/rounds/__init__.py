"""Agents agreeing: who is here, the plan that follows, penalties, leaps, stopping and history."""

from dtsvm.rounds.certify import average, certificates
from dtsvm.rounds.history import HISTORY, History, Info, Status
from dtsvm.rounds.membership import Membership
from dtsvm.rounds.plan import Elsewhere
from dtsvm.rounds.state import State

__all__ = [
    "HISTORY",
    "Elsewhere",
    "History",
    "Info",
    "Membership",
    "State",
    "Status",
    "average",
    "certificates",
]
