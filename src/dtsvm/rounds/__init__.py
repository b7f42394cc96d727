"""Agents agreeing: the step, membership, residuals, certificate and history."""

from dtsvm.rounds.certify import average, certificates
from dtsvm.rounds.history import HISTORY, History, Info, Status
from dtsvm.rounds.membership import Membership
from dtsvm.rounds.state import State
from dtsvm.rounds.step import compare, exchange, local_step, receive, send
from dtsvm.rounds.stopping import Stopping

__all__ = [
    "HISTORY",
    "History",
    "Info",
    "Membership",
    "State",
    "Status",
    "Stopping",
    "average",
    "certificates",
    "compare",
    "exchange",
    "local_step",
    "receive",
    "send",
]
