"""Whether company is worth it, on the command line."""

import json
import re

import numpy as np
import pytest
from clinics import write_rows

from dtsvm import DTSVM, DTSVMCV, load_model
from dtsvm.ui import compare

ROWS = ["rows.csv", "--label", "state", "--task", "disease", "--node", "clinic", "--raw"]


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_rows(tmp_path / "rows.csv", 90, 0)


def test_a_line_for_every_task_and_node_then_a_sentence_a_task(run, rows):
    lines = run("compare", *ROWS, "--network", "ring").stdout.splitlines()
    assert lines[0].split() == ["task", "node", "rows", "alone", "together", "chosen"]
    assert [line.split()[:2] for line in (lines[1], lines[5])] == [["cold", "all"], ["flu", "all"]]
    assert [line.split()[0] for line in lines[2:5]] == ["berlin", "paris", "rome"]
    assert re.fullmatch(r"cold trains .*; \d+\.\d % alone.*\.", lines[10])


def test_a_file_of_links_is_a_network_here_too(run, rows, tmp_path):
    (tmp_path / "links.csv").write_text("from,to\nberlin,paris\nparis,rome\n")
    line = run("compare", *ROWS, "--network", "line").stdout
    assert run("compare", *ROWS, "--network", "links.csv").stdout == line


def test_counts_of_nodes_add_up_to_those_of_the_task(run, rows):
    for task in json.loads(run("compare", *ROWS, "--json").stdout)["tasks"]:
        for way in ("alone", "together", "chosen"):
            wrong = sum(node["rows"] * node[way] for node in task["nodes"])
            assert wrong == pytest.approx(task["rows"] * task[way])
        low, high = task["chosen_interval"]
        assert low <= task["chosen"] <= high


def test_training_without_a_price_chooses_and_says_so(run, rows):
    result = run("train", *ROWS)
    model = load_model("model.json")
    assert isinstance(model, DTSVMCV)
    assert "Shares of rows labelled wrong when held out, C and company chosen:" in result.stdout
    assert re.search(r"flu trains .*; \d+\.\d % alone", result.stdout)
    assert model.columns_.label == "state"


@pytest.mark.parametrize("option", [["--C", "1"], ["--transfer", "none"], ["--method", "dtsvm"]])
def test_a_setting_of_the_objective_trains_by_hand(run, rows, option):
    run("train", *ROWS, *option)
    assert type(load_model("model.json")) is DTSVM


def test_settings_that_choosing_knows_are_handed_on(run, rows):
    run("train", *ROWS, "--network", "ring", "--tol", "0.05", "--positive", "sick")
    model = load_model("model.json")
    assert model.tol == 0.05
    assert np.array_equal(model.task_classes_, [["well", "sick"]] * 2)


def test_a_comparison_of_candidates_that_did_not_converge_says_so(run, rows, monkeypatch):
    chosen = DTSVMCV
    monkeypatch.setattr(compare, "DTSVMCV", lambda **given: chosen(**given, max_rounds=1))
    for more in ([], ["--json"]):
        said = run("compare", *ROWS, *more).stderr
        assert re.fullmatch(
            r"Not converged: max_rounds after \d+ rounds with gap \S+, tolerance 0\.05\. Drop "
            r"--raw if it was given: features far from one scale are slow to train\.\n", said,
        )  # fmt: skip


def test_a_choice_that_did_not_converge_is_said_without_settings_nobody_gave(run, rows):
    result = run("train", *ROWS, "--max-rounds", "1", exit_code=3)
    assert re.fullmatch(
        r"Not converged: max_rounds after \d+ rounds with gap \S+, tolerance 0\.05\. Raise "
        r"--max-rounds, drop --raw if it was given, or raise --tol\.\n", result.stderr,
    )  # fmt: skip
