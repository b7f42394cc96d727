"""
Tasks and nodes that come and go
================================

A ``Session`` keeps training while its world changes. Whoever leaves leaves no trace: the network
goes on to the optimum of those present.
"""

import matplotlib.pyplot as plt
import numpy as np

from dtsvm import Network, Session
from dtsvm.data import DigitFeatures, deal, load_mnist

digits = DigitFeatures(load_mnist(), n_components=10)
few = digits.draw("3v6", 24, 1000, draw=(3, 21), rng=0)
many = digits.draw("8v9", 360, 1000, rng=1)
N = 12
live = Session(Network.ring(N), C=0.01)
rows = {}
for task, drawn in (("3v6", few), ("8v9", many)):
    at = deal(len(drawn.y_train), N, seed=2)
    for node in range(N):
        rows[node, task] = drawn.X_train[at == node], drawn.y_train[at == node]
        live.enter(node, task, *rows[node, task], labels=(-1, 1))

# %%
# What happens, and the risk of the small task after every round.

risks, marks = [], []


def train(what, rounds=120):
    """Train some rounds and keep the risk."""
    marks.append((live.round, what))
    live.run(
        rounds,
        on_round=lambda info: risks.append(live.risk("3v6", few.X_test, few.y_test).mean),
    )
    print(f"{what:28} risk {risks[-1]:.1%}, certified gap {live.info.gap:.0e}")


train("each task alone")
live.couple("3v6", "8v9")
train("trained together")
live.leave(node=5)
train("node 5 is gone")
live.set(loss=0.3)
train("and 30 % of messages lost")
live.enter(5, "3v6", *rows[5, "3v6"], links=[4, 6])
live.enter(5, "8v9", *rows[5, "8v9"])
train("node 5 is back")

# %%
# Every dip is training on the way to a new optimum; the certificate says when it is there.

figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
axis.plot(np.arange(1, len(risks) + 1), 100 * np.array(risks))
for start, what in marks:
    axis.axvline(start, color="0.7", lw=0.8)
    axis.annotate(what, (start + 4, axis.get_ylim()[1]), va="top", fontsize=7.5, wrap=True)
axis.set(xlabel="round", ylabel="risk of 3v6 (%)", ylim=(0, None))
axis.spines[["top", "right"]].set_visible(False)
