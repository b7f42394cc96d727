"""Rows of one Parquet file read and trained on by several ranks: memory and time of each.

    python -m benchmarks.large_file --rows 10000000 --features 50 --ranks 4

Writes the file (rows × features float64, 400 nodes, rows in the order of nodes) into a temporary
folder and removes it. Every rank reads its nodes' rows as `dtsvm train` does, which prepares
columns, and then in other processes as `dtsvm train --raw` does, and runs a few rounds; printed
are its rows, what they take as float64, by how much its memory grew at its peak beyond what imports
took, and seconds: of reading the whole file in one process and letting go of it, of reading a
share, and a round.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

NODES = 400
GROUP = 100_000


def write(path: Path, n_rows: int, n_features: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    w = rng.normal(size=n_features)
    names = [f"x{j}" for j in range(n_features)]
    writer = None
    for first in range(0, n_rows, GROUP):
        n = min(GROUP, n_rows - first)
        X = rng.normal(size=(n, n_features))
        node = (np.arange(first, first + n) * NODES) // n_rows
        y = (X @ w + rng.normal(size=n) > 0).astype(np.int64)
        columns = {**dict(zip(names, X.T, strict=True)), "node": node, "y": y}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="none",
                                            use_dictionary=False)  # fmt: skip
        writer.write_table(table)
    writer.close()


def read_alone(path: Path) -> float:
    import pyarrow.parquet as pq

    began = time.perf_counter()
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(1 << 16):
            del batch
    return time.perf_counter() - began


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def work(path: Path, rounds: int, is_raw: bool) -> None:
    """One rank: read, train a few rounds, say what it took."""
    from dtsvm import DTSVM, Network
    from dtsvm.svm.company import find_company
    from dtsvm.ui.shares import read_share
    from dtsvm.ui.training_rows import Choice

    warnings.simplefilter("ignore")
    company = find_company("mpi")
    import pyarrow.parquet  # noqa: F401

    before, began = peak(), time.perf_counter()
    choice = Choice(label="y", node="node", is_raw=is_raw)
    rows = read_share([path], choice, company, Network.ring).train
    read, at_read = time.perf_counter() - began, peak()
    clf = DTSVM("ring", C=1e-6, engine="mpi", max_rounds=rounds)
    clf.fit(rows.X, rows.y, node=rows.node)
    said = [len(rows.X), rows.X.nbytes, at_read - before, peak() - before, read,
            clf.info_.seconds / clf.info_.n_rounds]  # fmt: skip
    for rank, one in enumerate(company.gather(said)):
        if company.comm.rank == 0:
            n, share, reading, training, seconds, a_round = one
            print(
                f"rank {rank}: {n:,} rows, {share / 1e9:.2f} GB; peak {reading / share:.2f} of "
                f"that after reading, {training / share:.2f} after training; read in "
                f"{seconds:.1f} s, a round {a_round:.2f} s", flush=True,
            )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--raw", action="store_true", help="at a rank: columns as they are")
    parser.add_argument("--work", type=Path, help="a rank's work, on this file")
    asked = parser.parse_args()
    if asked.work is not None:
        work(asked.work, asked.rounds, asked.raw)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        write(path, asked.rows, asked.features)
        print(f"{asked.rows:,} rows, {asked.features} features: "
              f"{path.stat().st_size / 1e9:.2f} GB", flush=True)  # fmt: skip
        read_alone(path)
        print(f"reading alone, one process: {read_alone(path):.1f} s", flush=True)
        command = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(asked.ranks),
                   sys.executable, "-m", "benchmarks.large_file", "--work", str(path),
                   "--rounds", str(asked.rounds)]  # fmt: skip
        for more in ([], ["--raw"]):
            print("as columns are:" if more else "columns prepared:", flush=True)
            subprocess.run([*command, *more], check=True)


if __name__ == "__main__":
    main()
