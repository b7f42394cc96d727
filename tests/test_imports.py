"""`import dtsvm` is light: nothing optional comes along."""

import json
import subprocess
import sys

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
