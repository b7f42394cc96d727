import json

import numpy as np
from clinics import TRAIN

from dtsvm.svm.model_file import load_model


def test_json_has_network_tasks_and_how_training_ended(run, model):
    found = json.loads(run("inspect", "model.json", "--json").stdout)
    estimator = load_model(model)
    assert found["method"] == "DTSVM"
    assert found["settings"]["C"] == 0.1
    assert found["network"]["nodes"] == ["berlin", "paris", "rome"]
    assert (len(found["network"]["links"]), found["network"]["degree"]) == (3, 1.0)
    assert found["info"]["status"] == "converged"
    assert found["info"]["gap"] == estimator.info_.gap
    flu = found["tasks"][1]
    assert (flu["task"], flu["labels"]) == ("flu", ["sick", "well"])
    common = np.linalg.norm(estimator.common_coef_)
    specific = np.linalg.norm(estimator.specific_coef_[1])
    assert np.isclose(flu["shared"], common / (common + specific))


def test_nodes_are_as_far_apart_as_they_are(run, model):
    found = json.loads(run("inspect", "model.json", "--json").stdout)
    estimator = load_model(model)
    u = np.append(estimator.coef_[0], estimator.intercept_[0])
    by_node = np.column_stack([estimator.node_coef_[:, 0], estimator.node_intercept_[:, 0]])
    apart = max(np.linalg.norm(by_node - u, axis=1)) / np.linalg.norm(u)
    assert np.isclose(found["tasks"][0]["apart"], apart)


def test_the_table_says_the_same(run, model):
    lines = run("inspect", "model.json").stdout.splitlines()
    top = lines.index("")
    first = [line for line in lines[:top] if not line.startswith(" ")]  # others go on
    facts = {line.split()[0]: line.split(maxsplit=1)[1] for line in first}
    assert facts["method"] == "DTSVM"
    assert facts["features"] == "3: a, b, c"
    assert facts["network"] == "3 nodes, 3 links, degree 1, 2 neighbours each"
    assert facts["status"].startswith("converged after ")
    assert lines[top + 1].split() == ["task", "labels", "nodes", "|w₀|", "|w_t|", "shared", "apart"]
    assert lines[top + 2].split()[:5] == ["cold", "sick", "/", "well", "3"]


def test_tasks_alone_share_nothing_that_could_be_measured(run, files):
    run(*TRAIN, "--method", "dsvm")
    found = json.loads(run("inspect", "model.json", "--json").stdout)
    assert [entry["shared"] for entry in found["tasks"]] == [None, None]


def test_positive_labels_by_task_are_shown(run, files):
    run(*TRAIN, "--positive", "flu=sick", "--positive", "cold=well")
    found = json.loads(run("inspect", "model.json", "--json").stdout)
    assert found["settings"]["positive"] == [["flu", "sick"], ["cold", "well"]]
    run("inspect", "model.json")


def test_a_missing_model_is_refused(run):
    assert run("inspect", "model.json", exit_code=1).stderr == (
        "Error: There is no file model.json. Check the path.\n"
    )


def test_a_level_with_a_newline_or_an_escape_keeps_its_line(run, tmp_path):
    rows = "".join(f'{i}.5,"day\n{"AB"[i % 2]}\x1b[2J",{i % 2}\n' for i in range(24))
    (tmp_path / "a.csv").write_text("age,ward,sick\n" + rows)
    run("train", "a.csv", "--label", "sick")
    lines = run("inspect", "model.json").stdout.splitlines()
    assert [line for line in lines if line.startswith("ward=day\\nA\\x1b[2J ")]
    assert not any("\x1b" in line for line in lines)
