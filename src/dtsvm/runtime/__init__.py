"""Who carries the messages: all nodes in one process, or one process a node."""

from dtsvm.runtime.memory import Memory

__all__ = ["Memory"]
