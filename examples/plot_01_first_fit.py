"""
A first fit
===========

Four nodes, two tasks. One has twelve rows, two of them positive; the other has two hundred. Trained
apart the small task is lost; trained together it leans on the large one.
"""

import matplotlib.pyplot as plt
import numpy as np

from dtsvm import DSVM, DTSVM, Network
from dtsvm.data import DigitFeatures, deal, load_mnist

# %%
# The bundled digits, ten principal components each. ``draw=(2, 10)`` takes two images of a 3 and
# ten of a 6. Every row gets a task and the node that holds it.

digits = DigitFeatures(load_mnist(), n_components=10)
few = digits.draw("3v6", 12, 1800, draw=(2, 10), rng=0)
many = digits.draw("8v9", 200, 1800, rng=1)
X = np.vstack([few.X_train, many.X_train])
y = np.append(few.y_train, many.y_train)
task = np.repeat(["3v6", "8v9"], [12, 200])
node = np.append(deal(12, 4, seed=0), deal(200, 4, seed=0))

# %%
# ``DSVM`` trains every task alone over the network, ``DTSVM`` trains them together. Both end at
# what pooling the rows would have given, and say how close they are.

errors = {}
for method in (DSVM, DTSVM):
    clf = method(Network.ring(4), C=0.01).fit(X, y, task=task, node=node)
    errors[method.__name__] = [
        1 - clf.score(rows.X_test, rows.y_test, task=name)
        for name, rows in (("3v6", few), ("8v9", many))
    ]
    print(
        f"{method.__name__}: {clf.info_.status} after {clf.info_.n_rounds} rounds, certified gap "
        f"{clf.info_.gap:.0e}; errors {errors[method.__name__][0]:.1%} and "
        f"{errors[method.__name__][1]:.1%}"
    )

# %%
# Certified: no training on the pooled rows can have an objective lower by a larger share.

figure, axis = plt.subplots(figsize=(6, 2.6), layout="constrained")
for k, (name, values) in enumerate(errors.items()):
    axis.barh(np.arange(2) + 0.2 - 0.4 * k, 100 * np.array(values), 0.36, label=name)
axis.set(yticks=[0, 1], yticklabels=["3v6, 12 rows", "8v9, 200 rows"], xlabel="test error (%)")
axis.legend(frameon=False)
axis.spines[["top", "right"]].set_visible(False)
