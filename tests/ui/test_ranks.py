import json
import sys
from pathlib import Path

from clinics import TRAIN, write_rows
from launch import needs_mpi, run

DTSVM = str(Path(sys.executable).with_name("dtsvm"))


def told(path):
    """A model file without the time it took."""
    model = json.loads(path.read_text())
    del model["info"]["seconds"]
    return model


@needs_mpi
def test_train_at_three_ranks_writes_the_model_of_one_process(tmp_path):
    write_rows(tmp_path / "rows.csv", 90, seed=0)
    command = [DTSVM, *map(str, TRAIN), "--network", "ring"]
    outputs = []
    for n_ranks, name in ((1, "one.json"), (3, "three.json")):
        code, out, err = run(n_ranks, *command, "--out", name, cwd=tmp_path)
        assert code == 0, err
        outputs.append(out)
    assert told(tmp_path / "one.json") == told(tmp_path / "three.json")
    assert outputs[1].count("status") == 1


@needs_mpi
def test_what_is_wrong_is_said_once_and_ends_all_ranks(tmp_path):
    write_rows(tmp_path / "rows.csv", 90, seed=0)
    asked = [DTSVM, "train", "nothing.csv", "--label", "sick", "--C", "0.1"]
    code, _, err = run(2, *asked, cwd=tmp_path)
    assert code == 1
    assert err.count("Error: There is no file nothing.csv.") == 1


@needs_mpi
def test_choosing_at_several_ranks_is_refused(tmp_path):
    write_rows(tmp_path / "rows.csv", 90, seed=0)
    code, _, err = run(2, DTSVM, "train", "rows.csv", "--label", "state", cwd=tmp_path)
    assert code == 2
    assert err.count("At several ranks say --C") == 1
    assert not (tmp_path / "model.json").exists()
