"""
Probabilities without a centre
==============================

A decision value says on which side a row lies, not how sure that is. Probabilities come from a
two-parameter logistic fit on held-out decision values; over the network that fit is sums.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from dtsvm import DTSVM, Network
from dtsvm.data import DigitFeatures, deal, load_mnist

digits = DigitFeatures(load_mnist(), n_components=10)
rows = digits.draw("8v9", 400, 1800, rng=0)
clf = DTSVM(Network.ring(5), C=0.1, probability=True)
clf.fit(rows.X_train, rows.y_train, node=deal(400, 5, seed=0))
chance = clf.predict_proba(rows.X_test)[:, 1]
is_eight = rows.y_test == 1

# %%
# How often is a row that is said to be an eight with 80 % really one?

print(f"Brier score {brier_score_loss(is_eight, chance):.3f}; always saying ½ would have 0.250")
true, said = calibration_curve(is_eight, chance, n_bins=8)
figure, axis = plt.subplots(figsize=(4.2, 4), layout="constrained")
axis.plot([0, 1], [0, 1], color="0.7", lw=1)
axis.plot(said, true, "o-")
axis.set(xlabel="said", ylabel="found", aspect="equal", title="probability of an eight")
axis.spines[["top", "right"]].set_visible(False)

# %%
# Rows a person should look at again: those that are nearly undecided.

unsure = np.abs(chance - 0.5) < 0.2
right = clf.predict(rows.X_test) == rows.y_test
print(f"{unsure.mean():.1%} of rows are unsure; right on {right[unsure].mean():.0%} of them, "
      f"on {right[~unsure].mean():.1%} of the others")  # fmt: skip
