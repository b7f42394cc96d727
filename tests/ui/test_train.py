import inspect
import json
import os
import pty
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from clinics import TRAIN, write_rows

from dtsvm import CSVM, CTSVM, DSVM, DTSVM, Network
from dtsvm.data import read_rows
from dtsvm.svm.model_file import load_model
from dtsvm.ui import show
from dtsvm.ui.train import train

METHODS = {"dtsvm": DTSVM, "dsvm": DSVM, "ctsvm": CTSVM, "csvm": CSVM}


def columns():
    return read_rows("rows.csv", label="state", task="disease", node="clinic")


def last_line(result):
    return result.stderr.splitlines()[-1]


@pytest.mark.parametrize("method", METHODS)
def test_the_written_model_is_the_estimators(run, files, method):
    run(*TRAIN, "--method", method)
    rows = columns()
    expected = METHODS[method](C=0.1).fit(rows.X, rows.y, task=rows.task, node=rows.node)
    again = load_model("model.json")
    assert np.array_equal(again.coef_, expected.coef_)
    assert np.array_equal(again.node_coef_, expected.node_coef_, equal_nan=True)
    assert again.columns_ == (("a", "b", "c"), "state", "disease", "clinic", None)


def test_the_report_says_what_was_learnt_and_how_it_ended(run, files):
    result = run(*TRAIN, "--network", "ring", "--out", "clinics.json")
    lines = result.stdout.splitlines()
    assert re.split(r"\s{2,}", lines[0]) == [
        "task", "labels", "rows", "nodes", "training error", "|w₀|", "|w_t|",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[1:3]] == ["cold", "flu"]
    assert lines[1].split()[1:6] == ["sick", "/", "well", "45", "3"]
    facts = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[4:]}
    info = load_model("clinics.json").info_
    assert facts["status"] == "converged"
    assert facts["rounds"].startswith(f"{info.n_rounds} in ")
    assert facts["sent"] == f"{info.messages_sent:,} messages, {info.bytes_sent:,} bytes"
    assert facts["model"] == "clinics.json"
    assert result.stderr == ""


def test_several_files_are_several_nodes(run, tmp_path):
    for seed, name in enumerate(["north", "south", "west"]):
        write_rows(tmp_path / f"{name}.csv", 30, seed, nodes=["ignored"])
    run("train", "north.csv", "south.csv", "west.csv", "--label", "state", "--task", "disease",
        "--network", "star")  # fmt: skip
    model = load_model("model.json")
    assert model.network_ == Network.star(["north", "south", "west"])


def test_files_of_other_kinds_are_read(run, files):
    pandas = pytest.importorskip("pandas")
    rows = columns()
    np.savez("rows.npz", X=rows.X, y=rows.y, task=rows.task, node=rows.node,
             feature_names=rows.feature_names)  # fmt: skip
    pandas.read_csv("rows.csv").to_parquet("rows.parquet")
    run(*TRAIN)
    expected = load_model("model.json").coef_
    run("train", "rows.npz", "--label", "y", "--C", "0.1", "--raw")
    assert np.array_equal(load_model("model.json").coef_, expected)
    run("train", "rows.parquet", *TRAIN[2:])
    assert np.array_equal(load_model("model.json").coef_, expected)


def test_every_setting_reaches_the_estimator(run, files):
    run(
        *TRAIN, "--common-reg", 2, "--specific-reg", 3, "--task-penalty", 4, "--node-penalty", 5,
        "--relaxation", 0.5, "--local", "exact", "--tol", 0.01, "--max-rounds", 500,
        "--max-seconds", 60, "--relays", "auto", "--personal", "--transfer", "none",
        "--positive", "sick", "--threads", 1,
    )  # fmt: skip
    assert load_model("model.json").get_params(deep=False) == {
        "C": 0.1, "common_reg": 2.0, "specific_reg": 3.0, "task_penalty": 4.0, "node_penalty": 5.0,
        "relaxation": 0.5, "local": "exact", "tol": 0.01, "max_rounds": 500, "max_seconds": 60.0,
        "relays": "auto", "personal": True, "transfer": False, "positive": "sick", "n_jobs": 1,
        "task_column": None, "node_column": None, "class_weight": None, "probability": False,
        "warm_start": False, "bias": "task", "callback": None, "engine": "memory",
        "network": Network.complete(["berlin", "paris", "rome"]),
    }  # fmt: skip


def test_every_parameter_of_the_estimator_has_an_option():
    options = {option.name for option in train.params}
    # Files have --task and --node.
    python_only = {"callback", "task_column", "node_column", "warm_start", "bias", "engine"}
    assert set(inspect.signature(DTSVM).parameters) - options == python_only


def test_groups_and_positive_labels_are_found_by_their_text(run, files):
    text = (files / "rows.csv").read_text()
    text = text.replace("flu", "1").replace("cold", "2").replace("sick", "7").replace("well", "8")
    (files / "rows.csv").write_text(text)
    run(*TRAIN, "--transfer", "1, 2", "--positive", "1=7", "--positive", "2=8")
    model = load_model("model.json")
    assert model.transfer == [[1, 2]]
    assert model.task_classes_.tolist() == [[8, 7], [7, 8]]


def test_names_that_look_like_markup_are_shown_as_they_are(run, files):
    text = (files / "rows.csv").read_text()
    (files / "rows.csv").write_text(text.replace("flu", "[/flu]").replace("cold", "[red]cold"))
    lines = run(*TRAIN).stdout.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["[/flu]", "[red]cold"]


def test_a_file_of_links_is_a_network(run, files):
    (files / "links.csv").write_text("from,to\nberlin,paris\nparis,lyon\nlyon,rome\n")
    run(*TRAIN, "--network", "links.csv", "--relays", "auto")
    network = load_model("model.json").network_
    assert list(network) == [("berlin", "paris"), ("paris", "lyon"), ("rome", "lyon")]


def test_links_without_a_header_lose_none(run, files):
    (files / "links.csv").write_text("berlin,paris\nparis,rome\n")
    run(*TRAIN, "--network", "links.csv")
    assert list(load_model("model.json").network_) == [("berlin", "paris"), ("paris", "rome")]


def test_chosen_features_are_used_in_their_order(run, files):
    run(*TRAIN, "--features", "c, a")
    assert load_model("model.json").columns_.features == ("c", "a")


def test_stopping_early_is_said_and_the_model_still_written(run, files):
    result = run(*TRAIN, "--max-rounds", "3", exit_code=3)
    assert "\nstatus  max_rounds\n" in result.stdout
    assert re.fullmatch(
        r"Not converged: max_rounds after 3 rounds with residual \S+ and gap \S+, tolerance "
        r"0\.0001\. Raise --max-rounds, lower --C, drop --raw if it was given, or raise --tol\.\n",
        result.stderr,
    )
    assert load_model("model.json").info_.n_rounds == 3


def test_ctrl_c_keeps_the_last_whole_round(run, files, monkeypatch):
    class Impatient:
        def __init__(self, progress, bar, tol):
            pass

        def __call__(self, info):
            if info.n_rounds == 5:
                raise KeyboardInterrupt

    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes the test's stderr for a terminal
    monkeypatch.setattr(show, "_Follower", Impatient)
    result = run(*TRAIN, exit_code=3)
    assert "The state after the last whole round was kept." in result.stderr
    info = load_model("model.json").info_
    assert (info.status, info.n_rounds) == ("interrupted", 5)


@pytest.mark.slow
def test_a_terminal_shows_rounds_residual_and_gap_and_ctrl_c_is_kind(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 30)) * np.logspace(0, 2, 30)
    np.savez(tmp_path / "rows.npz", X=X, y=np.sign(X[:, 0] + rng.normal(size=4000)),
             node=np.arange(4000) % 8)  # fmt: skip
    near, far = pty.openpty()
    command = [sys.executable, "-c", "from dtsvm.ui import main; main()", "train", "rows.npz",
               "--label", "y", "--network", "line", "--C", "1", "--tol", "1e-12",
               "--max-rounds", "10000000"]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=far, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(far)
    seen = b""
    while not re.search(rb"round [1-9].*residual \d.*gap", seen):
        seen += os.read(near, 65536)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=300)
    os.close(near)
    assert process.returncode == 3
    assert "status  interrupted" in out
    assert json.loads((tmp_path / "model.json").read_text())["info"]["status"] == "interrupted"


# Refusals


def test_a_missing_file_is_refused(run):
    result = run("train", "none.csv", "--label", "y", exit_code=1)
    assert result.stderr == "Error: There is no file none.csv. Check the path.\n"


def test_a_ragged_file_is_refused(run, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b,y\n1,2,no\n1,2\n")
    assert run("train", "rows.csv", "--label", "y", exit_code=1).stderr == (
        "Error: rows.csv, line 3: expected 3 columns, got 2. "
        "Give every row one value for each column name.\n"
    )


def test_an_unknown_column_is_refused(run, files):
    assert run("train", "rows.csv", "--label", "stat", exit_code=1).stderr == (
        "Error: rows.csv has no column 'stat' for the label. "
        "Choose from clinic, disease, a, b, c, state. Did you mean 'state'?\n"
    )


def test_an_unknown_network_is_refused_with_a_suggestion(run, files):
    assert run(*TRAIN, "--network", "rng", exit_code=1).stderr == (
        "Error: Unknown network 'rng'. Choose from complete, ring, line, star, grid. "
        "Did you mean 'ring'?\n"
    )


def test_a_missing_file_of_links_is_refused(run, files):
    assert run(*TRAIN, "--network", "links.csv", exit_code=1).stderr == (
        "Error: There is no file links.csv. Check the path.\n"
    )


def test_a_file_of_links_with_three_columns_is_refused(run, files):
    (files / "links.csv").write_text("from,to,weight\nberlin,paris,1\n")
    assert run(*TRAIN, "--network", "links.csv", exit_code=1).stderr == (
        "Error: links.csv has 3 columns. Give a file of links two: the nodes that each link "
        "joins.\n"
    )


def test_a_network_without_nodes_is_wrong_usage(run, files):
    result = run("train", "rows.csv", "--label", "state", "--network", "ring", exit_code=2)
    assert last_line(result) == (
        "Error: --network needs nodes: name their column with --node, or give a file for each node."
    )


def test_an_option_of_another_method_is_wrong_usage(run, files):
    result = run(*TRAIN, "--method", "csvm", "--threads", 1, "--common-reg", 2, exit_code=2)
    assert last_line(result) == "Error: --common-reg does not apply to --method csvm."


def test_an_unknown_task_or_label_is_refused(run, files):
    assert run(*TRAIN, "--transfer", "flu,clod", exit_code=1).stderr == (
        "Error: Unknown task in --transfer 'clod'. Choose from cold, flu. Did you mean 'cold'?\n"
    )
    assert run(*TRAIN, "--positive", "sikc", exit_code=1).stderr == (
        "Error: Unknown label in --positive 'sikc'. Choose from sick, well. Did you mean 'sick'?\n"
    )


def test_several_positive_labels_need_their_tasks(run, files):
    result = run(*TRAIN, "--positive", "sick", "--positive", "well", exit_code=2)
    assert last_line(result) == ("Error: --positive sick: with several, write each as TASK=LABEL.")


def test_a_bad_penalty_is_wrong_usage_and_a_bad_number_refused(run, files):
    result = run(*TRAIN, "--node-penalty", "much", exit_code=2)
    assert last_line(result) == (
        "Error: Invalid value for '--node-penalty': 'much' is neither a number nor auto."
    )
    assert run(*TRAIN, "--C", "-1", exit_code=1).stderr == (
        "Error: The 'C' parameter of DTSVM must be a positive float. Got -1.0 instead.\n"
    )


def test_a_place_that_cannot_be_written_is_refused_before_training(run, files):
    assert run(*TRAIN, "--out", "no/model.json", exit_code=1).stderr == (
        f"Error: There is no folder {files / 'no'} for model.json. Make it first.\n"
    )
    assert run(*TRAIN, "--out", files, exit_code=1).stderr == (
        f"Error: {files} is a folder. Name a file in it.\n"
    )


def test_rows_of_one_class_are_refused(run, files):
    text = (files / "rows.csv").read_text().replace("well", "sick")
    (files / "rows.csv").write_text(text)
    assert run(*TRAIN, exit_code=1).stderr == (
        "Error: rows.csv: column 'state' has only the label 'sick'. A classifier needs rows of "
        "two; name another column with --label, or add rows.\n"
    )


def test_a_c_that_nobody_chose_is_said(run, files):
    asked = ["train", "rows.csv", "--label", "state"]
    lines = run(*asked, "--probability", "--method", "dsvm").stdout.splitlines()
    assert "C       1, the default: with --probability, --method nothing is chosen" in lines
    lines = run(*asked, "--probability", "--C", "2").stdout.splitlines()
    assert not [line for line in lines if line.startswith("C ")]


def test_however_much_is_held_out_a_row_of_every_label_stays_to_train_on(run, files):
    result = run(*TRAIN, "--holdout", "0.999")
    assert "On 78 rows held out:" in result.stdout
    assert load_model("model.json").task_classes_.tolist() == [["sick", "well"]] * 2


def test_a_share_that_holds_out_nothing_is_said(run, files):
    assert run(*TRAIN, "--holdout", "0.01").stdout.endswith(
        "\nNo row is held out: --holdout 0.01 of each label's rows at each node rounds to none. "
        "Hold out a larger share.\n"
    )
