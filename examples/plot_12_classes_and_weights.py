"""
Three labels, rare ones weighted
================================

A task may have more than two labels, and rows may count more or less: by ``sample_weight``, or by
class, so that the rare label counts as much as the common one.
"""

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from dtsvm import DTSVM, Network

rng = np.random.default_rng(0)
SHARE = {"well": 0.8, "flu": 0.15, "sepsis": 0.05}
CENTRE = {"well": (0, 0), "flu": (1.6, 0.4), "sepsis": (0.4, 1.8)}


def draw(n):
    """Rows of three labels, the worst one rare."""
    labels = rng.choice(list(SHARE), n, p=list(SHARE.values()))
    return np.array([CENTRE[label] for label in labels]) + 0.7 * rng.normal(size=(n, 2)), labels


X, y = draw(600)
node = rng.integers(5, size=600)
X_new, y_new = draw(5000)

# %%
# Without weights the rare label is mostly missed; weighted, more of it is found.

for class_weight in (None, "balanced"):
    clf = DTSVM(Network.ring(5), C=1.0, class_weight=class_weight).fit(X, y, node=node)
    said = clf.predict(X_new)
    found = np.mean(said[y_new == "sepsis"] == "sepsis")
    print(
        f"class_weight={class_weight!r}: {found:.0%} of sepsis found, balanced accuracy "
        f"{balanced_accuracy_score(y_new, said):.1%}, {clf.info_.status}"
    )

# %%
# A weight a row does the same by hand: twice the weight is the row twice.

twice = np.where(y == "sepsis", 2.0, 1.0)
weighted = DTSVM(Network.ring(5), C=1.0, tol=1e-8).fit(X, y, node=node, sample_weight=twice)
again = np.repeat(np.arange(600), twice.astype(int))
copied = DTSVM(Network.ring(5), C=1.0, tol=1e-8).fit(X[again], y[again], node=node[again])
print("largest difference:", np.abs(weighted.coef_ - copied.coef_).max().round(5))
