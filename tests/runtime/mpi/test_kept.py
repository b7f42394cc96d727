import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from launch import needs_mpi, run_python, start, wait_until_gone

from dtsvm.errors import ModelFileError
from dtsvm.svm import DTSVM
from dtsvm.svm.keeper import Keeper

PROGRAM = Path(__file__).with_name("kept.py")
DTSVM_COMMAND = str(Path(sys.executable).with_name("dtsvm"))


@needs_mpi
def test_a_session_saved_at_three_ranks_goes_on_at_two_and_at_one_to_the_same_bits(tmp_path):
    for n_ranks, what in ((3, "save"), (2, "load"), (1, "load")):
        code, _, err = run_python(n_ranks, PROGRAM, what, tmp_path)
        assert code == 0, err


def rows(seed=0, n=400):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, np.where(X[:, 0] + rng.normal(size=n) > 0, 1, 0), np.arange(n) % 8


def kept(path, X, y, node, **more):
    clf = DTSVM("ring", **{"C": 10.0, "tol": 1e-9, **more})
    clf._keeper = Keeper(path, 0.0)
    return clf.fit(X, y, node=node)


@pytest.mark.filterwarnings("ignore::dtsvm.errors.NotConvergedWarning")
def test_a_fit_goes_on_from_its_checkpoint_bit_for_bit(tmp_path):
    X, y, node = rows()
    whole = DTSVM("ring", C=10.0, tol=1e-9, max_rounds=90).fit(X, y, node=node)
    kept(tmp_path / "state.npz", X, y, node, max_rounds=50)
    again = kept(tmp_path / "state.npz", X, y, node, max_rounds=40)
    assert again.info_.n_rounds == 90
    assert np.array_equal(again.coef_, whole.coef_)


@pytest.mark.filterwarnings("ignore::dtsvm.errors.NotConvergedWarning")
def test_a_checkpoint_of_other_rows_or_settings_is_refused(tmp_path):
    X, y, node = rows()
    path = tmp_path / "state.npz"
    kept(path, X, y, node, max_rounds=5)
    with pytest.raises(ModelFileError, match="keeps a training on other rows: remove it"):
        kept(path, X + 1e-9, y, node)
    with pytest.raises(ModelFileError, match="keeps a training with other settings: remove it"):
        kept(path, X, y, node, C=2.0)


@needs_mpi
def test_a_rank_killed_in_training_ends_all_and_leaves_a_whole_checkpoint(tmp_path):
    X, y, node = rows(n=2000)
    np.savez(tmp_path / "rows.npz", X=X, y=y, node=node)
    asked = ["train", "rows.npz", "--label", "y", "--C", "1000", "--tol", "1e-15", "--network",
             "ring", "--checkpoint", "state.npz", "--checkpoint-seconds", "0"]  # fmt: skip
    process = start(3, DTSVM_COMMAND, *asked, "--max-rounds", "100000000", cwd=tmp_path)
    try:
        while not (tmp_path / "state.npz").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        proxy = listed[0]
        ranks = Path(f"/proc/{proxy}/task/{proxy}/children").read_text().split()
        os.kill(int(ranks[-1]), signal.SIGKILL)
        process.communicate(timeout=300)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode != 0
    wait_until_gone(ranks)
    done = subprocess.run(
        [DTSVM_COMMAND, *asked, "--max-rounds", "3", "--out", "model.json"], cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 3), done.stderr
    assert json.loads((tmp_path / "model.json").read_text())["info"]["n_rounds"] > 3
