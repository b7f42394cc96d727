"""
Should my site join? Choosing inside the network
================================================

Which C, how much to share, with whom, and is a task better off alone? ``DTSVMCV`` answers by
holding out every node's own rows in turn; what travels is what training exchanges anyway, and sums.
On files, ``dtsvm compare`` prints the same.
"""

import matplotlib.pyplot as plt
import numpy as np

from dtsvm import DTSVMCV, Network
from dtsvm.data import DigitFeatures, deal, load_mnist

digits = DigitFeatures(load_mnist(), n_components=10)
sizes = {"3v6": 18, "5v4": 18, "8v9": 240}
drawn = {t: digits.draw(t, n, 1000, rng=i) for i, (t, n) in enumerate(sizes.items())}
X = np.vstack([rows.X_train for rows in drawn.values()])
y = np.concatenate([rows.y_train for rows in drawn.values()])
task = np.repeat(list(sizes), list(sizes.values()))
node = np.concatenate([deal(n, 6, seed=0) for n in sizes.values()])

# %%
# A sentence a task says what was chosen and what it is worth.

clf = DTSVMCV(Network.ring(6)).fit(X, y, task=task, node=node)
for choice in clf.choices_:
    print(choice.sentence)

# %%
# The same as a picture: errors on held-out rows, alone and as chosen, with 95 % intervals, and
# beside them the error of the result on a thousand rows that nobody has seen.

figure, axis = plt.subplots(figsize=(7, 2.8), layout="constrained")
for k, choice in enumerate(clf.choices_):
    for shift, found, colour in (
        (0.14, choice.alone, "#d55e00"),
        (-0.14, choice.chosen, "#0072b2"),
    ):
        share, low, high = (100 * value for value in found)
        axis.plot([low, high], [k + shift] * 2, color=colour)
        axis.plot(share, k + shift, "o", color=colour)
    rows = drawn[choice.task]
    unseen = 100 * (1 - clf.score(rows.X_test, rows.y_test, task=choice.task))
    axis.plot(unseen, k - 0.14, "x", color="black")
    print(f"{choice.task}: {unseen:.1f} % of unseen rows wrong")
axis.set(yticks=range(3), yticklabels=[f"{t}, {n} rows" for t, n in sizes.items()])
axis.set(xlabel="error (%)", xlim=(0, None))
for colour, word in (("#d55e00", "alone"), ("#0072b2", "as chosen"), ("black", "× unseen rows")):
    axis.plot([], [], color=colour, label=word)
axis.legend(frameon=False, labelcolor="linecolor", handlelength=0)
axis.spines[["top", "right"]].set_visible(False)
