"""Every bit after some rounds, as SHA-256: of all builds of the kernel, and of another commit.

    python -m benchmarks.bits --worlds 1000                     # builds of this kernel
    python -m benchmarks.bits --worlds 1000 --against PYTHON    # and that interpreter's dtsvm

A world is a random network with random tasks, blocks and settings; its digest is of x, z and λ
after 30 rounds, before the first leap, and after 50, behind it. Digests of another commit must be
equal before the leap; behind it numbers may differ by rounding: the worst difference is printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

ROUNDS = (30, 50)


def state_of(live) -> dict[str, np.ndarray]:
    """Return x, z and λ of a session, of this or an older commit."""
    tables = getattr(live._members.state, "tables", live._members.state)
    ends = tables.ends if hasattr(tables, "ends") else tables.halves
    return {
        "x": np.array(tables.agents["estimate"][tables.agents.used]),
        "z": np.array(ends["state"][ends.used]),
        "dual": np.array(tables.rows["dual"][tables.rows.used]),
    }


def world(seed: int):
    """Return a session of a random world."""
    from dtsvm import Network, Session

    rng = np.random.default_rng(seed)
    n, n_tasks, p = (int(rng.integers(*span)) for span in ((2, 9), (1, 4), (1, 20)))
    tree = {(int(rng.integers(i)), i) for i in range(1, n)}
    more = {(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.3}
    penalty = "auto" if rng.random() < 0.7 else float(10 ** rng.uniform(-2, 1))
    live = Session(
        Network(range(n), sorted(tree | more)), C=float(10 ** rng.uniform(-2, 1)),
        common_reg=float(10 ** rng.uniform(-1, 1)), specific_reg=float(10 ** rng.uniform(-1, 1)),
        task_penalty=penalty, node_penalty=penalty, relays="auto",
        local="exact" if rng.random() < 0.2 else "tracking",
        loss=float(rng.choice([0.0, 0.0, 0.3])), seed=seed,
    )  # fmt: skip
    for t in range(n_tasks):
        direction = rng.normal(size=p)
        for node in range(n):
            if t and rng.random() < 0.3:
                continue
            rows = int(rng.integers(0, 12))
            X = rng.normal(size=(rows, p))
            y = np.where(X @ direction + rng.normal(size=rows) > 0, 1.0, -1.0)
            live.enter(node, f"t{t}", X, y, n_features=p, labels=(-1.0, 1.0))
    if len(live.tasks) > 1:
        live.couple(*live.tasks)
    return live


def digests(seeds, folder: Path | None = None) -> list[list[str]]:
    """Return the digests of these worlds; keep the last numbers in a folder if there is one."""
    out = []
    for seed in seeds:
        live, found = world(seed), []
        for rounds in ROUNDS:
            live.run(rounds=rounds - (live.info.n_rounds if live.info else 0))
            state = state_of(live)
            found.append(hashlib.sha256(b"".join(v.tobytes() for v in state.values())).hexdigest())
        if folder:
            np.savez(folder / f"{seed}.npz", **state)
        out.append(found)
    return out


def ask(python: str, n: int, folder: Path, variant: str = "") -> list[list[str]]:
    """Run this file in another interpreter, or with another build."""
    folder.mkdir(parents=True, exist_ok=True)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"DTSVM_KERNEL": variant}
    command = [python, str(Path(__file__)), "--tell", str(n), str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return json.loads(done.stdout.splitlines()[-1])


def differences(n: int, one: Path, other: Path) -> np.ndarray:
    """Of every world, how far two runs' numbers differ, relative to the largest of its kind."""
    worst = np.zeros(n)
    for seed in range(n):
        with np.load(one / f"{seed}.npz") as a, np.load(other / f"{seed}.npz") as b:
            for name in a.files:
                size = max(float(np.abs(a[name]).max(initial=0.0)), 1e-300)
                far = float(np.abs(a[name] - b[name]).max(initial=0.0)) / size
                worst[seed] = max(worst[seed], far)
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--against", help="another interpreter, with another commit's dtsvm")
    parser.add_argument("--plain", type=int, default=20, help="worlds for the plain Python build")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/bits"))
    parser.add_argument("--tell", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.tell:
        print(json.dumps(digests(range(int(given.tell[0])), Path(given.tell[1]))))
        return
    ours = ask(sys.executable, given.worlds, given.out / "ours")
    for variant, n in (("baseline", given.worlds), ("python", given.plain)):
        theirs = ask(sys.executable, n, given.out / variant, variant)
        same = sum(a == b for a, b in zip(ours, theirs, strict=False))
        print(f"{variant}: {same} of {n} worlds equal in every bit, leaps too")
    if given.against:
        theirs = ask(given.against, given.worlds, given.out / "against")
        before, behind = (
            sum(a[k] == b[k] for a, b in zip(ours, theirs, strict=True)) for k in (0, 1)
        )
        far = differences(given.worlds, given.out / "ours", given.out / "against")
        print(f"other commit: {before} of {given.worlds} equal before a leap, {behind} behind it,")
        print(f"              {(far <= 1e-12).sum()} within 1e-12, the worst {far.max():.1e}")


if __name__ == "__main__":
    main()
