"""
A model that leaves the house
=============================

A trained model is a JSON file that a person can read. Where even that is too much, a task becomes
scikit-learn's own classifier, which needs nothing of this package any more.
"""

import tempfile
from pathlib import Path

import numpy as np

from dtsvm import DTSVM, Network, export, load_model, save_model

rng = np.random.default_rng(0)
X = rng.normal(size=(240, 3))
task = np.tile(["cough", "fever"], 120)
node = np.repeat(["oslo", "rome", "york"], 80)
y = np.where(X[:, 0] + 0.5 * X[:, 1] * (task == "fever") > 0, "sick", "well")
clf = DTSVM(Network.line(["oslo", "rome", "york"]), C=0.1, positive="sick")
clf.fit(X, y, task=task, node=node)

# %%
# Written and read back.

path = Path(tempfile.mkdtemp()) / "model.json"
save_model(clf, path, feature_names=("age", "dose", "weight"))
print(path.read_text()[:400], "…")
again = load_model(path)
print(again.predict(X[:4], task="fever").tolist(), y[:4].tolist())

# %%
# One task as scikit-learn's own linear classifier.

plain = export(clf, "cough")
print(plain, plain.coef_.round(3))
