"""Rows of two diseases at three clinics, and how to train on them."""

import csv

import numpy as np

WEIGHTS = {"flu": [1.0, 1.0, 0.0], "cold": [1.0, 0.5, 0.5]}
NODES = ["berlin", "paris", "rome"]


def write_rows(path, n, seed, nodes=NODES):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["clinic", "disease", "a", "b", "c", "state"])
        for i, x in enumerate(X):
            task = list(WEIGHTS)[i % 2]
            is_sick = x @ WEIGHTS[task] + 0.3 * rng.normal() > 0
            node = nodes[i // 2 % len(nodes)]
            writer.writerow([node, task, *x.tolist(), "sick" if is_sick else "well"])
    return path


TRAIN = ["train", "rows.csv", "--label", "state", "--task", "disease", "--node", "clinic",
         "--C", "0.1", "--raw"]  # fmt: skip
