import os
import subprocess
import sys

import numpy as np
import pytest

from dtsvm import Network, Session
from dtsvm.errors import DataError, ModelFileError


def session(seed=0, loss=0.2):
    rng = np.random.default_rng(seed)
    live = Session(Network.ring(4), C=0.1, loss=loss, seed=7)
    for node in range(4):
        for task in ("a", "b"):
            X = rng.normal(size=(10, 3))
            live.enter(node, task, X, np.sign(X[:, 0] + 0.3))
    live.couple("a", "b")
    return live


def bits(live):
    tables = live._members.state.tables
    return [tables.agents["estimate"].tobytes(), tables.ends["state"].tobytes(),
            tables.rows["dual"].tobytes(), live.history["dual_residual"].tobytes()]  # fmt: skip


RESUME = """
import sys
from dtsvm import Session
for path in sys.argv[2:]:
    live = Session.load(path)
    live.run(rounds=int(sys.argv[1]) - len(live.history))
    live.save(path)
"""


def test_save_load_in_another_process_and_go_on_is_bit_identical(tmp_path):
    straight = session()
    straight.run(rounds=200)
    paths = []
    for n in (100, 71, 80, 140):  # also amid the snapshots for a leap
        halfway = session()
        halfway.run(rounds=n)
        paths.append(tmp_path / f"{n}.npz")
        halfway.save(paths[-1])
    subprocess.run([sys.executable, "-c", RESUME, "200", *paths], check=True)
    assert [bits(Session.load(path)) for path in paths] == [bits(straight)] * 4


def test_everything_survives_the_disk(tmp_path):
    live = session()
    live.run(rounds=5)
    live.leave(task="b")
    live.save(tmp_path / "s.npz")
    back = Session.load(tmp_path / "s.npz")
    assert back.events == live.events
    assert back.finished == ("b",)
    assert back.settings == live.settings
    assert back.network == live.network
    assert np.array_equal(back.classifier("b", 1).coef, live.classifier("b", 1).coef)
    back.leave(node=3)
    back.run()


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.7, 0.999])
def test_a_file_cut_short_is_refused(keep, tmp_path):
    path = tmp_path / "s.npz"
    live = session()
    live.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole))])
    with pytest.raises(ModelFileError) as refused:
        Session.load(path)
    assert str(refused.value) == (
        f"{str(path)!r} is damaged or is not a saved session; take an older copy."
    )


def test_a_changed_number_is_noticed(tmp_path):
    path = tmp_path / "s.npz"
    session().save(path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays["agents.estimate"] = arrays["agents.estimate"] + 1
    np.savez(path, **arrays)
    with pytest.raises(ModelFileError, match="is damaged"):
        Session.load(path)


def test_a_missing_or_foreign_file_is_named(tmp_path):
    with pytest.raises(ModelFileError) as refused:
        Session.load(tmp_path / "none.npz")
    assert str(refused.value) == f"There is no file {str(tmp_path / 'none.npz')!r}."
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(ModelFileError, match="is not a saved session"):
        Session.load(tmp_path / "other.npz")


def test_a_label_that_json_cannot_hold_is_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "s.npz"
    session().save(path)
    old = path.read_bytes()
    live = Session(Network([frozenset({1}), "b"], [(frozenset({1}), "b")]))
    live.enter("b", "a", np.eye(2), [1, -1])
    with pytest.raises(DataError, match="use strings or numbers as labels"):
        live.save(path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["s.npz"]


KILL_SAVERS = """
import os, random, signal, sys, time
from dtsvm import Session

path, wait = sys.argv[1], random.Random(1)
expected = Session.load(path).history.tobytes()
halfway = 0
ready, tell = os.pipe()
for _ in range(40):
    child = os.fork()
    if child == 0:
        live = Session.load(path)
        os.write(tell, b".")
        while True:
            live.save(path)
    os.read(ready, 1)
    time.sleep(wait.uniform(0.0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert Session.load(path).history.tobytes() == expected
    halfway += any(name.startswith(".") for name in os.listdir(os.path.dirname(path)))
print(halfway)
"""


def test_kill_9_during_save_never_leaves_an_unreadable_state(tmp_path):
    path = tmp_path / "s.npz"
    live = session()
    live.run(rounds=20)
    live.save(path)
    killer = subprocess.run(
        [sys.executable, "-c", KILL_SAVERS, path], check=True, capture_output=True, text=True
    )
    assert int(killer.stdout) > 4  # kills did fall in the middle of a save


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    live = Session()
    live.enter(node=0, task=0, X=[[0.0], [1.0]], y=[0, 1])
    path = tmp_path / "no" / "state.npz"
    with pytest.raises(ModelFileError) as refused:
        live.save(path)
    assert str(refused.value) == (
        f"{path} cannot be written: No such file or directory. Choose another place."
    )
