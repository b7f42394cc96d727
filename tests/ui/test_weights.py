"""Rare labels and weighted rows on the command line, against pooled scikit-learn."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import recall_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from dtsvm.svm.model_file import read_model

SITES = ["north", "south", "west"]
EXACT = ["--method", "dsvm", "--tol", "1e-7", "--max-rounds", "100000"]


def rare_rows(n, seed):
    """One row in twenty is sick, and the sick differ a little."""
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < 0.05
    X = rng.normal(size=(n, 4)) * [1, 10, 0.1, 1] + 1.1 * sick[:, None] * [1, 8, 0.05, 0]
    rows = pd.DataFrame(X.round(4), columns=["age", "dose", "iron", "noise"])
    return rows.assign(weight=rng.integers(1, 4, n), sick=np.where(sick, "yes", "no"))


@pytest.fixture
def rare(run, tmp_path):
    whole, test = rare_rows(1200, 0), rare_rows(3000, 1)
    for i, name in enumerate(SITES):
        whole.iloc[i::3].to_csv(tmp_path / f"{name}.csv", index=False)
    test.to_csv(tmp_path / "test.csv", index=False)
    return whole, test


def pooled(classifier, whole, test, **options):
    features = ["age", "dose", "iron", "noise"]
    scaler = StandardScaler().fit(whole[features])
    classifier.fit(scaler.transform(whole[features]), whole["sick"], **options)
    return classifier, scaler.transform(test[features])


def train(run, *options):
    return run("train", *(f"{name}.csv" for name in SITES), "--label", "sick", "--features",
               "age,dose,iron,noise", *EXACT, *options)  # fmt: skip


def evaluate(run):
    return json.loads(run("evaluate", "model.json", "test.csv", "--json").stdout)


def test_balanced_weights_find_the_rare_as_pooled_linear_svc_does(run, rare):
    train(run, "--class-weight", "balanced", "--C", "0.1")
    found = evaluate(run)
    rival = LinearSVC(
        loss="hinge", C=0.1, class_weight="balanced", max_iter=1_000_000, random_state=0
    )
    rival, X = pooled(rival, *rare)
    expected = recall_score(rare[1]["sick"], rival.predict(X), pos_label="yes")
    assert abs(found["tasks"][0]["recall"][1] - expected) <= 0.01
    assert found["tasks"][0]["recall"][1] > 0.6


def test_without_weights_the_rare_are_missed_and_that_is_said_in_words(run, rare):
    train(run)
    first = run("evaluate", "model.json", "test.csv").stdout.splitlines()[0]
    assert first.startswith("The model is no better than guessing: ")
    assert "by always saying 'no'" in first


def test_weights_by_label_and_by_row_are_exact(run, rare):
    whole, test = rare
    options = ["--class-weight", "yes=7.5", "--class-weight", "no=1", "--weight", "weight"]
    train(run, *options)
    assert read_model("model.json").settings["class_weight"] == {"yes": 7.5, "no": 1.0}
    rival = SVC(kernel="linear", class_weight={"yes": 7.5, "no": 1.0}, tol=1e-9)
    rival, X = pooled(rival, whole, test, sample_weight=whole["weight"])
    text = run("predict", "model.json", "test.csv").stdout
    values = np.array([float(line.split(",")[-1]) for line in text.splitlines()[1:]])
    np.testing.assert_allclose(values, rival.decision_function(X), atol=1e-3)


def test_strange_weights_are_refused(run, rare):
    command = ["train", "north.csv", "--label", "sick"]
    assert run(*command, "--class-weight", "ill=2", exit_code=1).stderr == (
        "Error: Unknown label in --class-weight 'ill'. Choose from no, yes.\n"
    )
    for text in ("even", "yes=much"):
        last = run(*command, "--class-weight", text, exit_code=2).stderr.splitlines()[-1]
        assert last == (
            f"Error: --class-weight {text}: write balanced, or LABEL=WEIGHT for each label."
        )


def test_three_labels_are_chosen_trained_judged_and_shown(run, tmp_path):
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 150)
    rows = pd.DataFrame(rng.normal(size=(150, 2)).round(3) + 3 * np.eye(3)[kind][:, :2])
    rows.columns = ["a", "b"]
    rows.assign(kind=np.array(["cup", "jug", "pot"])[kind]).to_csv("rows.csv", index=False)
    text = run("train", "rows.csv", "--label", "kind", "--holdout", "0.2").stdout
    assert all(f"It (label {label}) trains alone" in text for label in ("cup", "jug", "pot"))
    assert read_model("model.json").method == "DTSVMCV"
    found = json.loads(run("evaluate", "model.json", "rows.csv", "--json").stdout)
    assert found["tasks"][0]["labels"] == ["cup", "jug", "pot"]
    assert found["error"] < 0.2
    assert len(found["tasks"][0]["confusion"]) == 3
    text = run("inspect", "model.json").stdout
    assert all(f"for {label}" in text for label in ("cup", "jug", "pot"))
    labels = {
        line.split(",")[0] for line in run("predict", "model.json", "rows.csv").stdout.split()
    }
    assert labels == {"label", "cup", "jug", "pot"}


def test_compare_has_a_choice_a_label_where_a_task_has_three(run, tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(120, 2)).round(3), columns=["a", "b"])
    rows["kind"] = np.array(["cup", "jug", "pot"])[np.digitize(rows["a"], [-0.4, 0.4])]
    rows.assign(shop=np.tile(["east", "west"], 60)).to_csv("rows.csv", index=False)
    asked = ["compare", "rows.csv", "--label", "kind", "--task", "shop", "--json"]
    for task in json.loads(run(*asked).stdout)["tasks"]:
        assert [one["label"] for one in task["labels"]] == ["cup", "jug", "pot"]
        assert all(one["sentence"].startswith(task["task"]) for one in task["labels"])
