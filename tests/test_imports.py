"""`import dtsvm` is light: nothing optional comes along."""

import json
import subprocess
import sys

import pytest

from dtsvm.svm import cv, model_reader

OPTIONAL = [
    "matplotlib",
    "cvxpy",
    "grpc",
    "pandas",
    "polars",
    "pyarrow",
    "networkx",
    "cryptography",
]

# scikit-learn itself imports pandas where it is installed, so only what we add counts.
SCRIPT = """
import json, sys
import numpy, scipy.sparse.csgraph, sklearn.base, sklearn.metrics, sklearn.utils.validation
import sklearn.exceptions, sklearn.utils.multiclass
before = set(sys.modules)
import dtsvm; dtsvm.DTSVM
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_importing_dtsvm_adds_nothing_optional():
    out = subprocess.run(
        [sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True
    ).stdout
    added = {name.split(".")[0] for name in json.loads(out)}
    assert not added & set(OPTIONAL)
    assert "dtsvm" in added


LOADED = """
import sys
from dtsvm.ui import main
main(["{command}", "--help"], standalone_mode=False)
print(sorted({{name.split(".")[0] for name in sys.modules}} & {{"sklearn", "pandas"}}))
"""


@pytest.mark.parametrize("command", ["agent", "predict"])
def test_who_does_not_fit_does_not_wait_for_scikit_learn(command):
    """Nor for pandas, which scikit-learn imports where it is installed."""
    program = LOADED.format(command=command)
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_methods_of_model_files_are_the_estimators():
    """They are named apart, so that a file is read without them."""
    assert tuple(cv.METHODS) == model_reader.METHODS
    pooled = [name for name, cls in cv.METHODS.items() if "network" not in cls._get_param_names()]
    assert tuple(pooled) == model_reader.POOLED
