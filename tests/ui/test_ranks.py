import json
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from click.testing import CliRunner
from clinics import TRAIN, write_rows
from launch import needs_mpi, run

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
    ("suffix", "more"),
    [(".parquet", ["--holdout", "0.2"]), (".parquet", ["--features", "dose,flag", "--raw"]),
     (".csv", ["--class-weight", "balanced"]), (".npz", ["--raw", "--network", "ring"])],
)  # fmt: skip
def test_ranks_that_read_their_own_rows_write_the_model_of_one_process(
    tmp_path, monkeypatch, suffix, more
):
    files = write_messy(tmp_path, suffix)
    both(tmp_path, monkeypatch, 3, "train", *files, "--label", "sick", "--C", "0.1", *more)


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
@pytest.mark.parametrize("label", ["sick", "grade"])  # of two, and of three: trained, not chosen
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
    code, _, err = run(3, DTSVM, *asked, cwd=tmp_path)
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
