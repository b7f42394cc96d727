"""
What neighbours may learn, and what noise costs
===============================================

Rows never travel, but that alone is no protection. A network agrees on one of three levels; the
last adds fresh noise to everything a node tells, accounted for over its whole life.
"""

import matplotlib.pyplot as plt
import numpy as np

from dtsvm.problem import Privacy
from dtsvm.runtime.privacy.accounting import noise_multiplier, spent_epsilon

for level in ("none", "masked", "dp"):
    print(f"{level}: {Privacy(level).meaning}\n")

# %%
# How much noise a budget ε asks for, in units of what one row can change. The budget is for a
# node's whole life: more rounds, more noise in each of them.

epsilons = np.array([0.5, 1, 2, 3, 5, 8])
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for rounds in (1, 5, 20):
    noise = [noise_multiplier(float(epsilon), 1e-5, rounds) for epsilon in epsilons]
    axis.loglog(epsilons, noise, "o-")
    axis.annotate(f" {rounds} rounds", (epsilons[-1], noise[-1]), va="center")
    print(f"{rounds:2} rounds at ε = 3: noise of {noise[3]:.2f} sensitivities in each")
axis.set(xlabel="ε of a node's whole life, δ = 1e-5", ylabel="noise / sensitivity", xlim=(0.45, 14))
axis.spines[["top", "right"]].set_visible(False)

# %%
# The other way round: what is spent after some rounds at that noise.

noise = noise_multiplier(3.0, 1e-5, 20)
spent = [f"{rounds}: {spent_epsilon(noise, 1e-5, rounds):.2f}" for rounds in (1, 5, 10, 20)]
print("ε spent after rounds", ", ".join(spent))
