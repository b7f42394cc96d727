import copy
import json
import os
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from dtsvm import CSVM, CTSVM, DSVM, DTSVM, Network, Session
from dtsvm.errors import DataError, ModelFileError, ParameterError
from dtsvm.problem import Columns
from dtsvm.svm import model_file
from dtsvm.svm.model_file import load_model, read_model, save_model

REMEDY = "Train again, or restore the file from a copy."
SECTIONS = [
    "format", "version", "written_by", "method", "settings", "columns", "preparation", "privacy",
    "choices", "network", "tasks", "common", "nodes", "info",
]  # fmt: skip


def rows(rng, tasks=("a", "b"), nodes=(0, 1, 2), labels=(-1, 1), n=60):
    X = rng.normal(size=(n, 3))
    y = np.array(labels)[(X[:, 0] + 0.1 * rng.normal(size=n) > 0).astype(int)]
    task = np.array(tasks)[np.arange(n) % len(tasks)]
    node = np.array(nodes)[np.arange(n) // 2 % len(nodes)]
    return X, y, task, node


def fitted(rng, method=DTSVM, **options):
    X, y, task, node = rows(rng)
    return method(C=0.1, **options).fit(X, y, task=task, node=node)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.json"


@pytest.fixture
def saved(rng, path):
    save_model(fitted(rng), path)
    return json.loads(path.read_text())


def refusal(path):
    with pytest.raises(ModelFileError) as refused:
        load_model(path)
    return str(refused.value)


def refusal_of(path, content):
    path.write_text(json.dumps(content))
    return refusal(path)


@pytest.mark.parametrize("method", [DTSVM, DSVM, CTSVM, CSVM])
def test_a_loaded_model_answers_bit_for_bit(rng, path, method):
    model = fitted(rng, method)
    save_model(model, path)
    again = load_model(path)
    X = rng.normal(size=(50, 3))
    for task in ("a", "b"):
        for node in (None, *model.nodes_.tolist()):
            ask = {"task": task, "node": node}
            assert np.array_equal(
                model.decision_function(X, **ask), again.decision_function(X, **ask)
            )
            assert np.array_equal(model.predict(X, **ask), again.predict(X, **ask))


@pytest.mark.parametrize("method", [DTSVM, DSVM, CTSVM, CSVM])
def test_a_loaded_model_has_every_attribute_of_the_saved_one(rng, path, method):
    model = fitted(rng, method)
    save_model(model, path)
    again = load_model(path)
    assert type(again) is method
    kept = {name for name in vars(model) if name.endswith("_")}
    assert {name for name in vars(again) if name.endswith("_")} == kept - {"history_"} | {
        "columns_"
    }
    for name in kept - {"history_", "network_", "info_", "model_"}:
        one, other = getattr(model, name), getattr(again, name)
        np.testing.assert_array_equal(one, other, err_msg=name)
        assert np.asarray(one).dtype == np.asarray(other).dtype, name
    assert again.network_ == model.network_
    assert again.info_ == model.info_


def test_a_loaded_model_can_be_trained_again(rng, path):
    model = fitted(rng, network=Network.line([0, 1, 2]), positive={"a": -1}, transfer=[["a"]])
    save_model(model, path)
    X, y, task, node = rows(np.random.default_rng(1))
    again = clone(load_model(path)).fit(X, y, task=task, node=node)
    assert np.array_equal(again.coef_, clone(model).fit(X, y, task=task, node=node).coef_)


@pytest.mark.parametrize(
    ("tasks", "nodes", "labels"),
    [
        (("a", "b"), ("x", "y"), ("no", "yes")),
        ((1, 2), (10, 20), (3, 6)),
        ((0.5, 1.5), (1.0, 2.0), (0.25, 0.75)),
        ((False, True), (False, True), (False, True)),
    ],
)
def test_names_and_labels_keep_their_type(rng, path, tasks, nodes, labels):
    X, y, task, node = rows(rng, tasks, nodes, labels)
    # scikit-learn refuses floats that are not whole as labels.
    y = y if not isinstance(labels[0], float) else y * 4
    model = CTSVM(C=0.1).fit(X, y, task=task) if nodes[0] is False else DTSVM(C=0.1).fit(
        X, y, task=task, node=node
    )  # fmt: skip
    save_model(model, path)
    again = load_model(path)
    for name in ("tasks_", "nodes_", "classes_"):
        one, other = getattr(model, name).tolist(), getattr(again, name).tolist()
        assert one == other
        assert [type(value) for value in one] == [type(value) for value in other]
    assert again.predict(X, task=tasks[0]).dtype == model.predict(X, task=tasks[0]).dtype


def test_tasks_with_labels_of_different_kinds_answer_alike_before_and_after(rng, path):
    X, y, task, _ = rows(rng, labels=(0, 1))
    mixed = y.astype(object)
    mixed[task == "b"] = np.where(y[task == "b"] == 1, "yes", "no")
    model = DTSVM(C=0.1).fit(X, mixed, task=task)
    save_model(model, path)
    again = load_model(path)
    for name, kind in (("a", int), ("b", str)):
        before, after = model.predict(X, task=name).tolist(), again.predict(X, task=name).tolist()
        assert before == after
        assert {type(label) for label in after} == {kind}
    assert again.classes_.tolist() == model.classes_.tolist()


def test_a_session_is_saved_as_the_estimator_that_would_train_it(rng, path):
    live = Session(Network.line(3), C=0.1, personal=True, local="exact")
    for node in range(3):
        X = rng.normal(size=(20, 2))
        live.enter(node, "sick", X, np.where(X[:, 0] > 0, "yes", "no"), labels=("no", "yes"))
    live.enter(1, "old", X, np.where(X[:, 1] > 0, 1, 0))
    live.run()
    save_model(live, path)
    again = load_model(path)
    assert (again.personal, again.local, again.transfer) == (True, "exact", [["sick"], ["old"]])
    assert again.network_ == live.network
    for task in ("sick", "old"):
        assert np.array_equal(again.predict(X, task=task), live.classifier(task).predict(X))
    assert np.array_equal(
        again.decision_function(X, task="sick", node=2),
        live.classifier("sick", 2).decision_function(X),
    )


def test_a_session_that_has_not_run_has_no_model():
    live = Session()
    live.enter(0, "sick", [[0.0], [1.0]], [-1, 1])
    with pytest.raises(DataError, match=r"The session has not trained yet: call run\(\) first."):
        live.model()


def test_a_model_keeps_preparation_privacy_units_and_probabilities(rng, path):
    model = fitted(rng).model_
    first = replace(model.tasks[0], sigmoid=np.array([[-1.5, 0.25]]))
    model = replace(
        model, tasks=(first, *model.tasks[1:]),
        preparation={"mean": [1.0, None], "kinds": {"a": 1}},
        privacy={"level": "masked"},
        columns=Columns(("u", "v", "w"), units=("mg", None, "m")),
    )  # fmt: skip
    save_model(model, path)
    again = read_model(path)
    assert again.preparation == model.preparation
    assert again.privacy == {"level": "masked"}
    assert again.columns == model.columns
    assert again.tasks[0].sigmoid.tolist() == [[-1.5, 0.25]]
    assert again.tasks[1].sigmoid is None


def test_a_preparation_that_json_cannot_keep_is_refused(rng, path):
    model = replace(fitted(rng).model_, preparation={"mean": float("nan")})
    with pytest.raises(ModelFileError, match="The model's preparation cannot be written"):
        save_model(model, path)
    assert not path.exists()


def test_a_model_cannot_be_changed(rng):
    model = fitted(rng).model_
    with pytest.raises(FrozenInstanceError):
        model.method = "CSVM"


def test_nodes_of_mixed_types_stay_mixed(rng, path):
    X, y, task, node = rows(rng, nodes=(0, 1))
    net = Network([0, "relay", 1], [(0, "relay"), ("relay", 1)])
    save_model(DTSVM(net, C=0.1, relays="auto").fit(X, y, task=task, node=node), path)
    assert load_model(path).nodes_.tolist() == [0, "relay", 1]


def test_a_node_that_does_not_hold_a_task_still_does_not(rng, path):
    X, y, _, node = rows(rng)
    task = np.where(node == 0, "a", "b")
    model = DTSVM(C=0.1, personal=True).fit(X, y, task=task, node=node)
    save_model(model, path)
    assert np.array_equal(load_model(path).node_coef_, model.node_coef_, equal_nan=True)


def test_names_that_json_cannot_keep_are_refused(rng, path):
    X, y, _, _ = rows(rng)
    pairs = np.empty(len(X), object)
    pairs[:] = [("north", i % 2) for i in range(len(X))]
    model = DTSVM(C=0.1).fit(X, y, node=pairs)
    with pytest.raises(ModelFileError) as refused:
        save_model(model, path)
    assert str(refused.value) == (
        "Node ('north', 0) cannot be written to a model file; use strings, ints, floats or bools "
        "as names."
    )
    assert not path.exists()


def test_the_file_is_for_people_too(saved, path):
    assert list(saved) == SECTIONS
    lines = path.read_text().splitlines()
    assert lines[1] == '  "format": "dtsvm model",'
    assert sum(line.lstrip().startswith('"coef": [') for line in lines) == 2 + 1 + 6
    assert '    "nodes": [0, 1, 2],' in lines


def test_what_is_saved_again_is_the_same_file(saved, path, tmp_path):
    save_model(load_model(path), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == path.read_text()


def test_columns_are_kept_through_another_save(rng, path):
    save_model(fitted(rng), path, feature_names=["u", "v", "w"], label="y", task="t", node="n")
    save_model(load_model(path), path)
    assert load_model(path).columns_ == (("u", "v", "w"), "y", "t", "n", None)


def test_a_model_fitted_on_a_frame_still_checks_names(rng, path):
    pandas = pytest.importorskip("pandas")
    X, y, task, node = rows(rng)
    frame = pandas.DataFrame(X, columns=["u", "v", "w"])
    model = DTSVM(C=0.1).fit(frame, y, task=task, node=node)
    save_model(model, path)
    again = load_model(path)
    assert again.columns_.features == ("u", "v", "w")
    assert np.array_equal(again.predict(frame, task="a"), model.predict(frame, task="a"))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["w", "v", "u"]], task="a")


def test_what_is_not_known_is_null(rng, path):
    model = fitted(rng)
    object.__setattr__(model.info_, "gap", float("nan"))
    save_model(model, path)
    assert json.loads(path.read_text())["info"]["gap"] is None
    assert np.isnan(load_model(path).info_.gap)


def test_only_trained_estimators_of_ours_are_saved(path):
    with pytest.raises(ParameterError) as refused:
        save_model(LogisticRegression(), path)
    assert str(refused.value) == (
        "save_model writes a DTSVM, DSVM, CTSVM, CSVM, DTSVMCV, a Session or a Model and nothing "
        "else. Got LogisticRegression instead."
    )
    with pytest.raises(NotFittedError):
        save_model(DTSVM(), path)


def test_too_few_feature_names_are_refused(rng, path):
    with pytest.raises(ParameterError) as refused:
        save_model(fitted(rng), path, feature_names=["u"])
    assert str(refused.value) == "feature_names has 1 names, but the model has 3 features."


def test_a_place_that_cannot_be_written_is_refused(rng, tmp_path):
    path = tmp_path / "no" / "model.json"
    with pytest.raises(ModelFileError) as refused:
        save_model(fitted(rng), path)
    assert str(refused.value) == (
        f"{path} cannot be written: No such file or directory. Choose another place."
    )


def test_a_save_that_fails_leaves_the_old_file(rng, saved, path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    before = path.read_text()
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ModelFileError, match="No space left on device"):
        save_model(fitted(rng, CSVM), path)
    assert path.read_text() == before
    assert list(path.parent.iterdir()) == [path]


# Refusals on reading


def test_a_file_cut_anywhere_is_refused(saved, path):
    text = path.read_text()
    for n in range(0, len(text.rstrip()) - 1, 97):
        path.write_text(text[:n])
        assert refusal(path).startswith(str(path))


def test_a_file_cut_in_half_is_refused(saved, path):
    text = path.read_text()
    half = text[: len(text) // 2]
    path.write_text(half)
    line = half.count("\n") + 1
    assert refusal(path) == f"{path} is cut short or damaged at line {line}. {REMEDY}"


@pytest.mark.parametrize(
    "content", [b"", b"a,b\n1,2\n", b"[1, 2]", b'{"format": "x"}', b"\xff\xfe"]
)
def test_a_file_of_another_kind_is_refused(path, content):
    path.write_bytes(content)
    assert refusal(path) == (
        f"{path} is not a model file. Give a file that 'dtsvm train' or save_model wrote."
    )


def test_another_version_is_refused(saved, path):
    assert refusal_of(path, {**saved, "version": 1}) == (
        f"{path} is a model file of version 1, but this dtsvm reads version 2. "
        "Install the dtsvm that wrote it, or train again."
    )


def test_a_file_without_choices_has_none(saved, path):
    del saved["choices"]
    path.write_text(json.dumps(saved))
    assert read_model(path).choices == ()
    assert "without a sentence" in refusal_of(path, {**saved, "choices": [{"task": "flu"}]})


@pytest.mark.parametrize("name", [name for name in SECTIONS[3:] if name != "choices"])
def test_a_missing_section_is_refused(saved, path, name):
    del saved[name]
    assert refusal_of(path, saved) == f"{path} has no section {name!r}. {REMEDY}"


def test_a_section_of_another_kind_is_refused(saved, path):
    assert refusal_of(path, {**saved, "tasks": {}}) == (
        f"{path}: section 'tasks' is not a list. {REMEDY}"
    )


def test_a_short_classifier_is_refused(saved, path):
    saved["tasks"][0]["classifiers"][0]["coef"].pop()
    assert refusal_of(path, saved) == (
        f"{path}: coef of task 'a' needs 3 numbers, got 2 numbers. {REMEDY}"
    )


def test_numbers_that_are_not_finite_are_refused(saved, path):
    saved["nodes"][0]["intercept"] = float("inf")
    assert refusal_of(path, saved) == (
        f"{path}: intercept of node 0, task 'a' has inf where a finite number is expected. {REMEDY}"
    )


def test_an_unknown_method_is_refused(saved, path):
    assert refusal_of(path, {**saved, "method": "SVC"}) == (
        f"{path}: the method is 'SVC' instead of one of DTSVM, DSVM, CTSVM, CSVM, DTSVMCV. {REMEDY}"
    )


def test_a_missing_entry_is_refused(saved, path):
    del saved["tasks"][1]["classes"]
    assert refusal_of(path, saved) == f"{path} lacks the entry 'classes'. {REMEDY}"


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    path = tmp_path / "none.json"
    assert refusal(path) == f"There is no file {path}. Check the path."
    assert refusal(tmp_path) == f"{tmp_path} cannot be read: Is a directory."


def places(content, here=()):
    """Every place in a JSON document."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        yield (*here, key)
        if isinstance(value, dict | list):
            yield from places(value, (*here, key))


def test_any_entry_replaced_is_read_or_refused_in_our_words(saved, monkeypatch, tmp_path):
    path = tmp_path / "model.json"
    for place in places(saved):
        for junk in (None, "junk", -1, 10**400, [], [[1]], {}, {"x": 1}, True):
            content = copy.deepcopy(saved)
            inner = content
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = junk
            monkeypatch.setattr(model_file, "parse", lambda _, content=content: content)
            try:
                load_model(path)
            except ModelFileError as refused:
                assert str(path) in str(refused)  # noqa: PT017
