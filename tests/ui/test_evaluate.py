import json

import numpy as np
import pytest

from dtsvm.data import read_rows
from dtsvm.svm.model_file import load_model


@pytest.fixture
def rows(model):
    return read_rows("test.csv", label="state", task="disease", node="clinic")


def error(model, rows, mine, **where):
    return float(np.mean(model.predict(rows.X[mine], **where) != rows.y[mine]))


def test_errors_are_the_estimators(run, model, rows):
    found = json.loads(run("evaluate", "model.json", "test.csv", "--json").stdout)
    estimator = load_model(model)
    assert [entry["task"] for entry in found["tasks"]] == ["cold", "flu"]
    for entry in found["tasks"]:
        mine = rows.task == entry["task"]
        assert entry["error"] == error(estimator, rows, mine, task=entry["task"])
        assert entry["rows"] == mine.sum()
    assert found["rows"] == 40
    assert found["wrong"] == sum(entry["wrong"] for entry in found["tasks"])
    assert found["error"] == found["wrong"] / 40


def test_every_node_is_asked_about_all_rows(run, model, rows):
    found = json.loads(run("evaluate", "model.json", "test.csv", "--by-node", "--json").stdout)
    estimator = load_model(model)
    for entry in found["tasks"]:
        mine = rows.task == entry["task"]
        assert [one["node"] for one in entry["nodes"]] == ["berlin", "paris", "rome"]
        for one in entry["nodes"]:
            expected = error(estimator, rows, mine, task=entry["task"], node=one["node"])
            assert one["error"] == expected


def test_with_a_node_column_every_node_answers_for_its_own_rows(run, model, rows):
    result = run("evaluate", "model.json", "test.csv", "--node", "clinic", "--by-node", "--json")
    for entry in json.loads(result.stdout)["tasks"]:
        for one in entry["nodes"]:
            mine = (rows.task == entry["task"]) & (rows.node == one["node"])
            assert one["rows"] == mine.sum()
        assert sum(one["wrong"] for one in entry["nodes"]) == entry["wrong"]


def test_the_table_has_a_line_a_task_and_one_for_all(run, model):
    lines = run("evaluate", "model.json", "test.csv").stdout.splitlines()
    assert lines[0].split() == [
        "task", "rows", "error", "95", "%", "guess", "bal.acc.", "recall", "prec.", "AUC",
    ]  # fmt: skip
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["cold", "20"],
        ["flu", "20"],
        ["all", "40"],
    ]
    assert lines[5].split() == ["cold:", "label", "said", "sick", "said", "well"]
    assert max(map(len, lines)) <= 80


def test_the_table_can_show_nodes(run, model):
    lines = run("evaluate", "model.json", "test.csv", "--by-node").stdout.splitlines()
    assert lines[0].split()[:4] == ["task", "node", "rows", "error"]
    assert [line.split()[0] for line in lines[1:6]] == ["cold", "berlin", "paris", "rome", "flu"]


def test_a_task_without_rows_is_left_out(run, model):
    found = run("evaluate", "model.json", "test.csv", "--task-name", "flu", "--json").stdout
    assert [entry["task"] for entry in json.loads(found)["tasks"]] == ["flu"]


def test_pooled_methods_have_one_node_whatever_is_asked(run, files):
    run("train", "rows.csv", "--label", "state", "--task", "disease", "--method", "ctsvm")
    found = run(
        "evaluate", "model.json", "test.csv", "--node", "clinic", "--by-node", "--json"
    ).stdout
    assert [one["node"] for one in json.loads(found)["tasks"][0]["nodes"]] == [0]


def test_a_strange_label_is_refused(run, model):
    text = (model.parent / "test.csv").read_text().replace("sick", "ill")
    (model.parent / "test.csv").write_text(text)
    assert run("evaluate", "model.json", "test.csv", exit_code=1).stderr == (
        "Error: Task 'cold' has labels 'sick' and 'well', but the rows have 'ill'. Write labels as "
        "they were in training, or leave out rows of others.\n"
    )


def test_an_unknown_task_is_refused_and_not_left_out(run, model):
    text = (model.parent / "test.csv").read_text().replace("flu", "flue")
    (model.parent / "test.csv").write_text(text)
    assert run("evaluate", "model.json", "test.csv", exit_code=1).stderr == (
        "Error: Unknown task 'flue'. Choose from cold, flu. Did you mean 'flu'?\n"
    )


def test_labels_must_be_named_once(run, model):
    content = json.loads(model.read_text())
    content["columns"]["label"] = None
    model.write_text(json.dumps(content))
    result = run("evaluate", "model.json", "test.csv", exit_code=2)
    assert result.stderr.splitlines()[-1] == "Error: Name the column of labels with --label."
    run("evaluate", "model.json", "test.csv", "--label", "state")


def test_a_model_that_did_not_converge_is_said_first(run, files):
    run("train", "rows.csv", "--label", "state", "--features", "a,b,c", "--C", "1", "--node",
        "clinic", "--max-rounds", "2", exit_code=3)  # fmt: skip
    first = run("evaluate", "model.json", "test.csv").stdout.splitlines()[0]
    assert first.startswith("The model did not converge (max_rounds after 2 rounds, gap ")
    assert first.endswith("): train it further before you trust these figures.")


def test_nodes_that_disagree_are_said_before_the_figures(run, files):
    run("train", "rows.csv", "--label", "state", "--features", "a,b,c", "--C", "1", "--node",
        "clinic", "--max-rounds", "2", exit_code=3)  # fmt: skip
    result = run("evaluate", "model.json", "test.csv", "--by-node", "--json")
    found = json.loads(result.stdout)
    estimator = load_model("model.json")
    X = read_rows("test.csv", label="state", features=["a", "b", "c"]).X
    X = (X - [f["mean"] for f in estimator.model_.preparation["features"]]) / [
        f["scale"] for f in estimator.model_.preparation["features"]
    ]
    whole = estimator.predict(X)
    differs = [estimator.predict(X, node=name) != whole for name in estimator.nodes_.tolist()]
    share = np.any(differs, axis=0).mean()
    assert found["disagreement"] == share
    assert any(f"Nodes disagree on {100 * share:.1f} % of" in s for s in found["sentences"])


def test_files_or_a_running_network_are_needed(run, model):
    result = run("evaluate", "model.json", exit_code=2)
    assert result.stderr.splitlines()[-1] == "Error: Missing argument 'FILES...'."
