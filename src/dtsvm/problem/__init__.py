"""What is minimised, over which network, and how good an answer provably is."""

from dtsvm.problem.certificate import Certificate, objective
from dtsvm.problem.network import Network
from dtsvm.problem.settings import Settings

__all__ = ["Certificate", "Network", "Settings", "objective"]
