"""
Half of the messages lost
=========================

Links hold their own state, so a lost message leaves one of them as it was and nothing else. The
network needs more rounds; the answer is the same.
"""

import matplotlib.pyplot as plt
import numpy as np

from dtsvm import Network, Session

rng = np.random.default_rng(0)
network = Network.grid(16)
blocks = {v: rng.normal(size=(25, 6)) for v in network.nodes}
slope = rng.normal(size=6)

figure, axis = plt.subplots(figsize=(6.5, 3), layout="constrained")
answers = []
for loss in (0.0, 0.25, 0.5):
    live = Session(network, C=0.1, loss=loss, seed=1, tol=1e-7)
    for v, X in blocks.items():
        live.enter(v, "sick", X, np.where(X @ slope + 0.2 > 0, 1, -1))
    gaps = []
    live.run(on_round=lambda info, gaps=gaps: gaps.append(max(info.primal_residual, 1e-16)))
    answers.append(live.classifier("sick").coef)
    print(f"{loss:.0%} lost: {live.info.n_rounds} rounds, certified gap {live.info.gap:.0e}")
    axis.semilogy(gaps, label=f"{loss:.0%} lost")
axis.set(xlabel="round", ylabel="disagreement of neighbours")
axis.legend(frameon=False)
axis.spines[["top", "right"]].set_visible(False)
print("largest difference of the answers:", np.abs(np.diff(answers, axis=0)).max().round(6))
