"""Which cases there are, in the order they run: a module `benchmarks.cases.<name>` each."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["CASES", "load"]

CASES = {
    "start": "The first fit of a new process",
    "paper_size": "The paper's size: 10 nodes, 2 tasks, 10 features, 37 rows an agent",
    "breast_cancer": "Breast cancer, 398 rows, on rings, against pooled LIBLINEAR",
    "sweep": "One sweep over the rows against plain matrix products",
    "warm": "Going on after a change against starting anew",
    "nodes": "How good every node is when training says that it is done",
    "rounds": "Rounds against the best fixed penalty an oracle could choose",
    "random_problems": "Random problems, penalties chosen automatically",
    "growth": "From 10 to 10,000 nodes",
    "memory": "A million rows",
    "ranks": "Over the ranks of MPI",
    "mnist": "All MNIST images of 3, 6, 8 and 9, against pooled LIBLINEAR",
    "ten_digits": "All ten digits of MNIST as CSR rows, against pooled LIBLINEAR",
    "probabilities": "Probabilities beside calibration of pooled rows",
    "text": "200,000 sparse rows of 100,000 features, against pooled LIBLINEAR",
    "page": "The live page of 200 nodes in a browser",
}


def load(name: str) -> Any:
    """Return a case's module: `run(settings)` gives its results, its docstring says how."""
    return import_module(f"benchmarks.cases.{name}")
