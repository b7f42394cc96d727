"""
One network over many processes
===============================

A network that is simulated need not be simulated by one process. ``engine="mpi"`` spreads its nodes
over the ranks of an MPI program; the answer is that of one process to the last bit. Here nodes are
placed on ranks, and where there is an ``mpiexec`` the same fit runs at one, two and four of them.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from dtsvm import DTSVM, Network
from dtsvm.runtime.mpi.place import cut_links, place_nodes

# %%
# Nodes are placed so that few links are cut and ranks have as many rows as each other. What a cut
# link costs is one x to the other rank a round.

side = 24
grid = Network.grid(side * side)
links = np.asarray(grid.links, np.int64)
figure, axes = plt.subplots(1, 3, figsize=(8, 2.8), layout="constrained")
for axis, n_ranks in zip(axes, (2, 4, 8), strict=True):
    rank = place_nodes(np.ones(len(grid), np.int64), links, n_ranks)
    axis.imshow(rank.reshape(side, side), cmap="tab10", vmax=9)
    axis.set(title=f"{n_ranks} ranks, {cut_links(rank, links)} of {len(links)} cut")
    axis.axis("off")

# %%
# A program for every rank. Each may be given all rows, or, as here, those of its own nodes alone;
# tasks, labels and who holds what are agreed before the first round.

program = """
import json
import numpy as np
from mpi4py import MPI
from dtsvm import DTSVM, Network

comm = MPI.COMM_WORLD
rows = np.load("rows.npz")
own = rows["node"] * comm.size // 64 == comm.rank
clf = DTSVM(Network.ring(64), C=0.1, engine="mpi")
clf.fit(rows["X"][own], rows["y"][own], node=rows["node"][own])
if comm.rank == 0:
    print(json.dumps([clf.coef_.tolist(), clf.info_.n_rounds, clf.info_.gap]))
"""

rng = np.random.default_rng(0)
X = rng.normal(size=(3200, 8))
y = np.where(X[:, 0] - X[:, 1] + rng.normal(size=len(X)) > 0, 1, 0)
node = np.arange(len(X)) % 64
alone = DTSVM(Network.ring(64), C=0.1).fit(X, y, node=node)
print(f"one process: {alone.info_.n_rounds} rounds, gap {alone.info_.gap:.1e}")

mpiexec = shutil.which("mpiexec", path=Path(sys.executable).parent) or shutil.which("mpiexec")
with tempfile.TemporaryDirectory() as folder:
    np.savez(Path(folder, "rows.npz"), X=X, y=y, node=node)
    for n_ranks in (1, 2, 4) if mpiexec else ():
        command = [mpiexec, "-n", str(n_ranks), sys.executable, "-c", program]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"ranks {n_ranks}: mpi4py is missing here; pip install 'dtsvm[mpi]'")
            break
        coef, n_rounds, gap = json.loads(done.stdout.splitlines()[-1])
        is_same = np.array_equal(coef, alone.coef_)
        print(f"ranks {n_ranks}: {n_rounds} rounds, gap {gap:.1e}, the same bits: {is_same}")
