import csv
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dtsvm import Preparation
from dtsvm.data import read_rows
from dtsvm.problem import Columns
from dtsvm.svm.model_file import load_model, read_model, save_model


def answers(text):
    lines = list(csv.reader(io.StringIO(text)))
    assert lines[0] == ["label", "decision"]
    return [line[0] for line in lines[1:]], np.array([float(line[1]) for line in lines[1:]])


def last_line(result):
    return result.stderr.splitlines()[-1]


@pytest.fixture
def rows(model):
    return read_rows("test.csv", label="state", task="disease", node="clinic")


def test_predictions_are_the_estimators_bit_for_bit(run, model, rows):
    labels, values = answers(run("predict", "model.json", "test.csv", "--task", "disease").stdout)
    estimator = load_model(model)
    assert labels == estimator.predict(rows.X, task=rows.task).tolist()
    assert np.array_equal(values, estimator.decision_function(rows.X, task=rows.task))


def test_the_task_column_of_training_is_remembered(run, model):
    short = run("predict", "model.json", "test.csv").stdout
    assert short == run("predict", "model.json", "test.csv", "--task", "disease").stdout


def test_one_task_and_one_node_can_answer_for_all_rows(run, model, rows):
    result = run(
        "predict", "model.json", "test.csv", "--task-name", "flu", "--node-name", "rome"
    )  # fmt: skip
    expected = load_model(model).decision_function(rows.X, task="flu", node="rome")
    assert np.array_equal(answers(result.stdout)[1], expected)


def test_each_row_can_be_answered_by_its_own_node(run, model, rows):
    result = run("predict", "model.json", "test.csv", "--node", "clinic")
    expected = load_model(model).decision_function(rows.X, task=rows.task, node=rows.node)
    assert np.array_equal(answers(result.stdout)[1], expected)


def test_out_is_a_file_and_stdout_stays_empty(run, model):
    expected = run("predict", "model.json", "test.csv").stdout
    result = run("predict", "model.json", "test.csv", "--out", "answers.csv")
    assert (result.stdout, result.stderr) == ("", "40 predictions: answers.csv\n")
    assert (model.parent / "answers.csv").read_text() == expected


def test_features_are_found_by_name_wherever_they_stand(run, model, tmp_path):
    expected = run("predict", "model.json", "test.csv").stdout
    with open("test.csv") as file:
        table = list(csv.DictReader(file))
    with open("turned.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, ["extra", "c", "b", "a", "disease"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows({**row, "extra": 99} for row in table)
    assert run("predict", "model.json", "turned.csv").stdout == expected


def test_a_model_of_one_task_needs_no_task(run, files):
    run("train", "rows.csv", "--label", "state", "--features", "a,b,c")
    result = run("predict", "model.json", "test.csv")
    assert set(answers(result.stdout)[0]) == {"sick", "well"}


def test_names_are_found_though_a_file_types_them_differently(run, files):
    """Tasks 1, 2 and b are text; a file with 1 and 2 alone has numbers."""
    text = (files / "rows.csv").read_text()
    (files / "rows.csv").write_text(
        text.replace("flu", "1") + "rome,b,0,0,1,sick\nrome,b,1,0,0,well\n"
    )
    (files / "test.csv").write_text("disease,a,b,c\n1,0.5,0.5,0.5\n1,-2,-2,-2\n")
    run("train", "rows.csv", "--label", "state", "--task", "disease", "--transfer", "none",
        "--features", "a,b,c")  # fmt: skip
    assert answers(run("predict", "model.json", "test.csv").stdout)[0] == ["sick", "well"]


def test_a_model_saved_in_python_predicts_from_files(run, model, rows):
    save_model(replace(read_model(model), columns=Columns()), "python.json")
    expected = run("predict", "model.json", "test.csv", "--task-name", "flu").stdout
    assert run("predict", "python.json", "test.csv", "--task-name", "flu").stdout == expected


def test_an_unknown_task_or_node_is_refused(run, model):
    assert run("predict", "model.json", "test.csv", "--task-name", "flue", exit_code=1).stderr == (
        "Error: Unknown task 'flue'. Choose from cold, flu. Did you mean 'flu'?\n"
    )
    assert run("predict", "model.json", "test.csv", "--task", "clinic", exit_code=1).stderr == (
        "Error: Unknown task 'berlin'. Choose from cold, flu.\n"
    )
    result = run("predict", "model.json", "test.csv", "--node-name", "roma", exit_code=1)
    assert result.stderr == (
        "Error: Unknown node 'roma'. Choose from berlin, paris, rome. Did you mean 'rome'?\n"
    )


def test_a_column_and_a_name_together_are_wrong_usage(run, model):
    result = run("predict", "model.json", "test.csv", "--task", "disease", "--task-name", "flu",
                 exit_code=2)  # fmt: skip
    assert last_line(result) == "Error: Give --task or --task-name, not both."


def test_a_missing_feature_is_refused(run, model):
    (model.parent / "new.csv").write_text("a,b,disease\n1,2,flu\n")
    assert run("predict", "model.json", "new.csv", exit_code=1).stderr == (
        "Error: new.csv has no column 'c' for a feature. Choose from a, b, disease.\n"
    )


def test_several_tasks_without_a_column_are_wrong_usage(run, model, rows):
    save_model(replace(read_model(model), columns=Columns()), "python.json")
    assert last_line(run("predict", "python.json", "test.csv", exit_code=2)) == (
        "Error: The model knows several tasks (cold, flu): name their column with --task, or one "
        "of them with --task-name."
    )


def test_another_number_of_columns_is_refused(run, model, rows):
    save_model(replace(read_model(model), columns=Columns()), "python.json")
    (model.parent / "new.csv").write_text("a,b\n1,2\n")
    result = run("predict", "python.json", "new.csv", "--task-name", "flu", exit_code=1)
    assert result.stderr == (
        "Error: The rows have 2 columns of numbers (a, b), but the model has 3 features. "
        "Leave only those in the file.\n"
    )


def test_a_model_cut_in_half_is_refused(run, model):
    text = model.read_text()
    model.write_text(text[: len(text) // 2])
    line = len(model.read_text().splitlines())
    assert run("predict", "model.json", "test.csv", exit_code=1).stderr == (
        f"Error: model.json is cut short or damaged at line {line}. "
        "Train again, or restore the file from a copy.\n"
    )


def test_rows_in_place_of_the_model_are_refused(run, model):
    assert run("predict", "test.csv", "model.json", exit_code=1).stderr == (
        "Error: test.csv is not a model file. Give a file that 'dtsvm train' or save_model wrote.\n"
    )


def test_probabilities_are_those_of_the_label_given(run, files):
    run("train", "rows.csv", "--label", "state", "--task", "disease", "--features", "a,b,c",
        "--C", "0.1", "--probability")  # fmt: skip
    lines = list(csv.DictReader(io.StringIO(run("predict", "model.json", "test.csv").stdout)))
    found = np.array([float(line["probability"]) for line in lines])
    estimator = load_model("model.json")
    rows = read_rows("test.csv", label="state", task="disease", features=["a", "b", "c"])
    made = Preparation.from_dict(estimator.model_.preparation)
    X = made.transform({name: rows.X[:, j] for j, name in enumerate("abc")})
    label = [estimator.classes_.tolist().index(line["label"]) for line in lines]
    expected = estimator.predict_proba(X, task=rows.task)[np.arange(len(X)), label]
    np.testing.assert_allclose(found, expected)


def test_what_is_kept_is_copied_to_the_last_digit(run, tmp_path):
    rows = pd.DataFrame({"age": [60.5, 70.5, 61.5, 69.5], "weight, dry (kg)": [70, 80, 90, 75]})
    rows["mrn"] = 1234567890123456789 + np.arange(4)
    rows["sick"] = ["no", "yes", "no", "yes"]
    rows.to_parquet("rows.parquet")
    rows.to_csv("rows.csv", index=False)
    asked = ["--features", 'age,"weight, dry"']
    run("train", "rows.parquet", "--label", "sick", *asked)
    asked = ["--keep", 'mrn,"weight, dry (kg)"']
    said = run("predict", "model.json", "rows.parquet", *asked).stdout
    assert said == run("predict", "model.json", "rows.csv", *asked).stdout
    assert said.splitlines()[1].startswith("1234567890123456789,70,no,")
    assert run("predict", "model.json", "rows.csv", "--keep", "mrm", exit_code=1).stderr == (
        "Error: rows.csv has no column 'mrm' for --keep. Choose from age, weight, dry, mrn, sick. "
        "Did you mean 'mrn'?\n"
    )


def test_a_column_of_an_answers_name_is_not_kept_in_silence(run, model):
    result = run("predict", "model.json", "test.csv", "--keep", "label", exit_code=2)
    assert last_line(result) == (
        "Error: --keep label: answers have a column of this name. Rename it in the files."
    )


def test_a_frame_of_raw_columns_is_prepared_as_the_file_says(run, files):
    run("train", "rows.csv", "--label", "state", "--task", "disease", "--node", "clinic",
        "--C", "0.1")  # fmt: skip
    values = answers(run("predict", "model.json", "test.csv").stdout)[1]
    frame = pd.read_csv("test.csv")
    estimator = load_model("model.json")
    found = estimator.decision_function(frame, task=frame["disease"])
    assert np.array_equal(found, values)
    made = Preparation.from_dict(estimator.model_.preparation)
    features = estimator.decision_function(made.transform(frame), task=frame["disease"])
    assert np.array_equal(features, values)


@pytest.mark.filterwarnings("default::dtsvm.errors.StrangeRowsWarning")
def test_a_file_in_another_unit_is_answered_with_one_line_of_warning(run, files):
    run("train", "rows.csv", "--label", "state", "--task", "disease", "--C", "0.1")
    frame = pd.read_csv("test.csv")
    frame.assign(a=100 * (frame["a"] + 5)).to_csv("strange.csv", index=False)
    result = run("predict", "model.json", "strange.csv")
    assert len(answers(result.stdout)[0]) == 40
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("Warning: strange.csv has 'a' from ")
