"""
Choosing inside the network
===========================

Which C, how much to share, with whom, and is a task better off alone? ``DTSVMCV`` answers by
holding out every node's own rows in turn; what travels is what training exchanges anyway, and sums.
"""

import matplotlib.pyplot as plt
import numpy as np

from dtsvm import DTSVM, DTSVMCV, Network
from dtsvm.data import DigitFeatures, deal, load_mnist

digits = DigitFeatures(load_mnist(), n_components=10)
sizes = {"3v6": 30, "5v4": 30, "8v9": 240}
drawn = {t: digits.draw(t, n, 1000, rng=i) for i, (t, n) in enumerate(sizes.items())}
X = np.vstack([rows.X_train for rows in drawn.values()])
y = np.concatenate([rows.y_train for rows in drawn.values()])
task = np.repeat(list(sizes), list(sizes.values()))
node = np.concatenate([deal(n, 6, seed=0) for n in sizes.values()])

# %%
# A sentence a task says what was chosen and what it is worth.

chosen = DTSVMCV(Network.ring(6)).fit(X, y, task=task, node=node)
for choice in chosen.choices_:
    print(choice.sentence)

# %%
# Beside it, sharing with settings taken out of the air.

taken = DTSVM(Network.ring(6), C=0.01).fit(X, y, task=task, node=node)
errors = {
    name: [100 * (1 - clf.score(r.X_test, r.y_test, task=t)) for t, r in drawn.items()]
    for name, clf in (("chosen", chosen), ("C = 0.01, all shared", taken))
}
for name, values in errors.items():
    print(f"{name:22}", "  ".join(f"{t} {v:.1f} %" for t, v in zip(sizes, values, strict=True)))

figure, axis = plt.subplots(figsize=(6, 2.8), layout="constrained")
for k, (name, values) in enumerate(errors.items()):
    axis.bar(np.arange(3) + 0.4 * k - 0.2, values, 0.36, label=name)
axis.set(xticks=range(3), xticklabels=[f"{t}, {n} rows" for t, n in sizes.items()])
axis.set_ylabel("test error (%)")
axis.legend(frameon=False)
axis.spines[["top", "right"]].set_visible(False)
