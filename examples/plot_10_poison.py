"""
A node that lies
================

One node of twelve turns all its labels round and tells each of them eight times. The network goes
to the optimum of what it is told; once the node is taken out, to that of the others, without a
trace.
"""

import matplotlib.pyplot as plt

from dtsvm.ui.page.demo import DemoNetwork, mesh

scene = DemoNetwork(mesh([str(i + 1) for i in range(12)], seed=0), seed=0)


def happen(action, rounds=200, **what):
    """Do something to the network and train on."""
    if action:
        print(scene.do(action, what))
    for _ in range(rounds):
        scene.is_settled = False
        scene.move()
    frame = scene.frame()
    risk = ", ".join(f"{task['name']} {task['risk']:.1%}" for task in frame["tasks"])
    print(f"    risk of {risk}; certified gap {frame['gap']:.0e}")


happen("couple", tasks=["3v6", "8v9"])
happen("poison", node="7")
happen("kill", node="7")

# %%
# The same by hand, in the browser: ``dtsvm demo page``.

figure, axis = plt.subplots(figsize=(6.5, 3), layout="constrained")
columns = scene.records.columns
rounds = [row[0] for row in scene.records.rows]
for task in ("3v6", "8v9"):
    for what, style in (("risk", "-"), ("optimum", "--")):
        at = columns.index(f"{what} {task}")
        colour = {"3v6": "#0072b2", "8v9": "#d55e00"}[task]
        values = [100 * row[at] for row in scene.records.rows]
        label = task if what == "risk" else f"optimum of those present, {task}"
        axis.plot(rounds, values, style, color=colour, label=label, lw=1.2)
axis.set(xlabel="round", ylabel="risk (%)", ylim=(0, None))
axis.legend(frameon=False, fontsize=8)
axis.spines[["top", "right"]].set_visible(False)
