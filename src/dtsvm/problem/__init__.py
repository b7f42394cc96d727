"""What is minimised, over which network, and how good an answer provably is."""

from dtsvm.problem.certificate import Certificate
from dtsvm.problem.model import Columns, Model, TaskModel
from dtsvm.problem.network import Network
from dtsvm.problem.privacy import Privacy
from dtsvm.problem.settings import Settings

__all__ = ["Certificate", "Columns", "Model", "Network", "Privacy", "Settings", "TaskModel"]
