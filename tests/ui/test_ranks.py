import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pandas
import pytest
from click.testing import CliRunner
from clinics import TRAIN, write_rows
from launch import needs_mpi, run, start

from dtsvm.ui import main

DTSVM = str(Path(sys.executable).with_name("dtsvm"))


def told(path):
    """A model file without the time it took."""
    model = json.loads(path.read_text())
    del model["info"]["seconds"]
    return model


def both(folder, monkeypatch, n_ranks, *asked):
    """Run a command here and at several ranks: the same model, the same words."""
    monkeypatch.chdir(folder)
    alone = CliRunner().invoke(main, [*asked, "--out", "one.json"])
    assert alone.exit_code == 0, alone.output
    code, out, err = run(n_ranks, DTSVM, *asked, "--out", "many.json", cwd=folder)
    assert code == 0, err
    assert told(folder / "one.json") == told(folder / "many.json")
    for one, other in zip(alone.output.splitlines(), out.splitlines(), strict=True):
        assert one == other or "json" in one or " rounds" in one or one.startswith("rounds")
    return out


@needs_mpi
def test_train_at_three_ranks_writes_the_model_of_one_process(tmp_path, monkeypatch):
    write_rows(tmp_path / "rows.csv", 90, seed=0)
    out = both(tmp_path, monkeypatch, 3, *map(str, TRAIN), "--network", "ring")
    assert out.count("status") == 1


def write_messy(folder, suffix):
    """Rows of seven nodes in no order: gaps, words, a constant; in three files, or one."""
    rng = np.random.default_rng(1)
    n = 400
    columns = {
        "site": rng.choice([f"s{k}" for k in range(7)], n),
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(50, 10, n)),
        "dose": rng.exponential(3.0, n),
        "flag": rng.integers(0, 2, n),
        "same": np.ones(n),
    }
    columns["sick"] = (columns["dose"] + rng.normal(size=n) > 2).astype(int)
    if suffix == ".npz":
        names = ["age", "dose", "flag"]
        X = np.stack([np.nan_to_num(columns[name]) for name in names], 1)
        np.savez(folder / "rows.npz", X=X, sick=columns["sick"], node=columns["site"],
                 feature_names=names)  # fmt: skip
        return ["rows.npz"]
    frame = pandas.DataFrame(
        {**columns, "ward": rng.choice(["A", "B", "C"], n, p=[0.6, 0.35, 0.05])}
    )
    if suffix == ".parquet":
        frame.to_parquet(folder / "rows.parquet", row_group_size=64)
        return ["rows.parquet", "--node", "site"]
    for k in range(3):
        frame.iloc[k::3].drop(columns="site").to_csv(folder / f"f{k}.csv", index=False)
    return ["f0.csv", "f1.csv", "f2.csv"]


@needs_mpi
@pytest.mark.parametrize(
    ("n_ranks", "suffix", "more"),
    [(3, ".parquet", ["--holdout", "0.2"]), (2, ".parquet", ["--features", "dose,flag", "--raw"]),
     (2, ".csv", ["--class-weight", "balanced"]), (2, ".npz", ["--raw", "--network", "ring"])],
)  # fmt: skip
def test_ranks_that_read_their_own_rows_write_the_model_of_one_process(
    tmp_path, monkeypatch, n_ranks, suffix, more
):
    files = write_messy(tmp_path, suffix)
    both(tmp_path, monkeypatch, n_ranks, "train", *files, "--label", "sick", "--C", "0.1", *more)


def write_counts(folder, suffix):
    """What some of the rows do not tell: a count of all rows, of each site's, decimal commas."""
    rng = np.random.default_rng(2)
    n = 240
    site = rng.permutation(np.arange(n) % 4)
    dose = rng.exponential(3.0, n)
    columns = {
        "site": site,
        "row": np.arange(n),  # a count in the whole file, and at no rank
        "visit": np.empty(n, int),  # a count at every rank of one site, and not in the file
        "dose": dose,
        "sick": (dose + rng.normal(size=n) > 2).astype(int),
    }
    for k in range(4):
        columns["visit"][site == k] = np.arange(n // 4)
    frame = pandas.DataFrame(columns)
    if suffix == ".parquet":
        frame.to_parquet(folder / "rows.parquet", row_group_size=50)
    else:  # 1,234 is ambiguous, and all that sites 0 and 1 have; 2,5 elsewhere settles it
        frame["dose"] = np.where(site < 2, "1,234", [f"{x:.1f}".replace(".", ",") for x in dose])
        frame.to_csv(folder / "rows.csv", index=False, sep=";")
    return [f"rows{suffix}", "--node", "site", "--label", "sick", "--C", "0.1"]


@needs_mpi
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_what_columns_hold_is_found_from_all_ranks_rows(tmp_path, monkeypatch, suffix):
    out = both(tmp_path, monkeypatch, 4, "train", *write_counts(tmp_path, suffix))
    assert "Column 'row' looks like an identifier" in out
    assert "'visit'" not in out


@needs_mpi
def test_labels_that_ranks_do_not_share_are_several_classes(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    site = np.arange(120) % 4
    grade = 2 * (site // 2) + rng.integers(0, 2, 120)
    frame = pandas.DataFrame({"site": site, "x": grade + rng.normal(size=120), "grade": grade})
    frame.to_parquet(tmp_path / "rows.parquet")
    both(tmp_path, monkeypatch, 2, "train", "rows.parquet", "--node", "site", "--label", "grade",
         "--C", "0.1")  # fmt: skip


@needs_mpi
def test_a_bad_value_is_named_by_its_row_in_the_file(tmp_path):
    files = write_messy(tmp_path, ".parquet")
    frame = pandas.read_parquet(tmp_path / "rows.parquet")
    frame.loc[333, "dose"] = np.inf
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=64)
    code, _, err = run(2, DTSVM, "train", *files, "--label", "sick", "--C", "1", cwd=tmp_path)
    assert code == 1
    assert err.count("Error: rows.parquet, row 334: column 'dose' has inf, which is not a") == 1


@needs_mpi
@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [(["train", "--help"], 0, "Usage: dtsvm train"),
     (["train", "x.csv", "--label", "y", "--C", "a"], 2, "Error: Invalid value for '--C'"),
     (["trian"], 2, "Error: Unknown command 'trian'"),
     (["inspect", "none.json"], 1, "none.json")],
)  # fmt: skip
def test_ranks_speak_once_whatever_is_asked(tmp_path, asked, code, words):
    found, out, err = run(2, DTSVM, *asked, cwd=tmp_path)
    assert found == code
    assert (out + err).count(words) == 1


@needs_mpi
def test_a_command_of_one_process_runs_at_one_rank(tmp_path, monkeypatch):
    write_rows(tmp_path / "rows.csv", 90, seed=0)
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(main, list(map(str, TRAIN))).exit_code == 0
    asked = ["predict", "model.json", "rows.csv"]
    alone = CliRunner().invoke(main, asked)
    code, out, err = run(2, DTSVM, *asked, cwd=tmp_path)
    assert (code, out) == (0, alone.stdout)
    assert err.count("dtsvm predict runs in one process: rank 0 of 2 does it.") == 1


@needs_mpi
def test_ranks_with_different_commands_are_refused(tmp_path):
    one, other = ([DTSVM, "train", f"{name}.csv", "--label", "y"] for name in "ab")
    code, _, err = run(1, *one, ":", "-n", "1", *other, cwd=tmp_path)
    assert code == 2
    assert err.count("Error: Rank 0 runs 'dtsvm train a.csv --label y' and rank 1 runs") == 1


@needs_mpi
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_ranks_with_the_state_kept(tmp_path, sign):
    write_rows(tmp_path / "rows.csv", 90, seed=0)
    asked = [*map(str, TRAIN), "--tol", "1e-30", "--max-rounds", "100000000"]
    asked += ["--node-penalty", "1e7", "--task-penalty", "1e7"]  # they take ages to agree
    asked += ["--checkpoint", "state.npz", "--checkpoint-seconds", "0.1"]
    started = start(2, DTSVM, *asked, cwd=tmp_path)
    state = tmp_path / "state.npz"
    while not state.exists() and started.poll() is None:
        time.sleep(0.05)
    os.kill(started.pid, sign)
    out, err = started.communicate(timeout=300)
    assert started.returncode == 3, err
    assert out.count("interrupted") == 1
    assert err.count("Not converged: interrupted") == 1
    assert (tmp_path / "model.json").exists()


@needs_mpi
def test_what_is_wrong_is_said_once_and_ends_all_ranks(tmp_path):
    write_rows(tmp_path / "rows.csv", 90, seed=0)
    asked = [DTSVM, "train", "nothing.csv", "--label", "sick", "--C", "0.1"]
    code, _, err = run(2, *asked, cwd=tmp_path)
    assert code == 1
    assert err.count("Error: There is no file nothing.csv.") == 1


@needs_mpi
def test_choosing_at_two_ranks_writes_the_model_of_one_process(tmp_path, monkeypatch):
    write_rows(tmp_path / "rows.csv", 90, seed=0)
    asked = ["train", "rows.csv", "--label", "state", "--task", "disease", "--node", "clinic"]
    both(tmp_path, monkeypatch, 2, *asked)


DEALT = "import dtsvm.ui, dtsvm.ui.train as t; t.SMALL_BYTES = 0; dtsvm.ui.main()"


@needs_mpi
@pytest.mark.parametrize("label", ["sick", "grade"])  # of two, and of three
def test_choosing_says_of_rows_at_every_rank_what_it_says_of_rows_at_their_own(
    tmp_path, monkeypatch, label
):
    asked = ["train", *write_messy(tmp_path, ".parquet"), "--holdout", "0.2", "--label", label]
    frame = pandas.read_parquet(tmp_path / "rows.parquet")
    frame["grade"] = np.digitize(frame.pop("dose") if label == "grade" else frame["dose"], [1, 4])
    frame.drop(columns={"sick", "grade"} - {label}).to_parquet(tmp_path / "rows.parquet")
    out = both(tmp_path, monkeypatch, 2, *asked)
    code, dealt, err = run(2, sys.executable, "-c", DEALT, *asked, "--out", "d.json", cwd=tmp_path)
    assert code == 0, err
    assert told(tmp_path / "d.json") == told(tmp_path / "one.json")
    lines = (text.splitlines() for text in (out, dealt))
    for one, other in zip(*lines, strict=True):
        assert one == other or "json" in one or one.startswith("rounds")


@needs_mpi
def test_a_column_in_another_unit_at_one_node_is_refused_at_ranks_too(tmp_path):
    asked = ["train", *write_messy(tmp_path, ".parquet"), "--label", "sick", "--C", "0.1"]
    frame = pandas.read_parquet(tmp_path / "rows.parquet")
    frame.loc[frame["site"] == "s3", "age"] *= 1000
    frame.to_parquet(tmp_path / "rows.parquet")
    code, _, err = run(2, DTSVM, *asked, cwd=tmp_path)
    assert code == 1
    assert err.count("Error: Node s3 has 'age' about 1024 times as large as s0") == 1


@needs_mpi
def test_a_method_that_pools_rows_is_refused_at_several_ranks(tmp_path):
    write_rows(tmp_path / "rows.csv", 90, seed=0)
    asked = [DTSVM, "train", "rows.csv", "--label", "state", "--C", "1", "--method", "csvm"]
    code, _, err = run(2, *asked, cwd=tmp_path)
    assert code == 2
    assert err.count("--method csvm pools all rows on one machine") == 1
    assert not (tmp_path / "model.json").exists()
