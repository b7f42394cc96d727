"""Columns that say task and node: scikit-learn's searches, scorers and stacks without routing."""

from datetime import timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneGroupOut,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)

from dtsvm import CSVM, CTSVM, DSVM, DTSVM, Network, Session, load_model, save_model
from dtsvm.errors import DataError

CV = StratifiedKFold(3)


@pytest.fixture
def table(rng):
    n = 180
    X = rng.normal(size=(n, 4))
    disease = np.array(["cold", "flu"])[np.arange(n) % 2]
    site = np.array(["east", "north", "south"])[np.arange(n) // 2 % 3]
    score = X[:, 0] + 0.6 * X[:, 1] * (disease == "flu") + 0.3 * rng.normal(size=n)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.insert(2, "disease", disease)
    frame["site"] = site
    return frame, np.where(score > 0, "sick", "well")


def make(**more):
    return DTSVM(task_column="disease", node_column="site", C=0.1, **more)


def test_columns_are_what_task_and_node_would_have_been(table):
    frame, y = table
    clf = make().fit(frame, y)
    plain = frame[list("abcd")]
    said = DTSVM(C=0.1).fit(plain, y, task=frame["disease"], node=frame["site"])
    assert clf.feature_names_in_.tolist() == list("abcd")
    assert np.array_equal(clf.coef_, said.coef_)
    assert np.array_equal(clf.predict(frame), said.predict(plain, task=frame["disease"]))


def test_polars_is_as_good_as_pandas(table):
    frame, y = table
    other = pl.DataFrame({name: frame[name].tolist() for name in frame})
    clf, again = make().fit(frame, y), make().fit(other, y)
    assert np.array_equal(clf.coef_, again.coef_)
    assert np.array_equal(clf.predict(frame), again.predict(other))
    assert cross_val_score(make(), other, y, cv=CV).min() > 0.7


@pytest.mark.parametrize("method", [DTSVM, DSVM, CTSVM, CSVM])
def test_all_four_take_columns(table, method):
    frame, y = table
    clf = method(task_column="disease", node_column="site", C=0.1).fit(frame, y)
    assert clf.tasks_.tolist() == ["cold", "flu"]
    assert clf.score(frame, y) > 0.85


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc", "balanced_accuracy", "f1_macro"])
def test_a_grid_search_with_any_scorer(table, scoring):
    frame, y = table
    search = GridSearchCV(make(), {"C": [0.001, 0.1]}, scoring=scoring, cv=CV).fit(frame, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ > 0.75
    assert search.predict(frame).shape == y.shape


def test_values_and_labels_of_held_out_rows(table):
    frame, y = table
    values = cross_val_predict(make(), frame, y, cv=CV, method="decision_function")
    labels = cross_val_predict(make(), frame, y, cv=CV)
    assert np.array_equal(np.where(values > 0, "well", "sick"), labels)
    assert (labels == y).mean() > 0.8


def test_a_calibrated_classifier_of_several_tasks(table):
    frame, y = table
    clf = CalibratedClassifierCV(make(), cv=CV).fit(frame, y)
    p = clf.predict_proba(frame)
    assert p.shape == (180, 2)
    assert (clf.classes_[p.argmax(axis=1)] == y).mean() > 0.85


def test_a_learning_curve(table):
    frame, y = table
    sizes, _, scores = learning_curve(make(), frame, y, cv=CV, train_sizes=[0.4, 1.0])
    assert sizes.tolist() == [48, 120]
    assert np.isfinite(scores).all()


def test_a_stack_over_several_tasks(table):
    frame, y = table
    stack = StackingClassifier(
        [("common", make()), ("alone", make(transfer=False))], LogisticRegression(), cv=CV
    )
    assert stack.fit(frame, y).score(frame, y) > 0.85


def test_leaving_one_site_out_asks_the_others(table):
    frame, y = table
    found = cross_validate(
        make(), frame, y, groups=frame["site"], cv=LeaveOneGroupOut(), return_estimator=True
    )
    assert found["test_score"].min() > 0.75
    assert [clf.nodes_.tolist() for clf in found["estimator"]] == [
        ["north", "south"], ["east", "south"], ["east", "north"],
    ]  # fmt: skip


def test_a_networks_site_may_be_left_out_too(table):
    frame, y = table
    clf = make(network=Network.complete(["east", "north", "south"]))
    scores = cross_val_score(clf, frame, y, groups=frame["site"], cv=LeaveOneGroupOut())
    assert scores.min() > 0.75


def test_importances_shuffle_tasks_as_any_column(table):
    frame, y = table
    found = permutation_importance(make().fit(frame, y), frame, y, n_repeats=2, random_state=0)
    assert found.importances_mean.argmax() == 0


def test_turned_sides_are_put_right_for_scorers(table):
    frame, y = table
    clf = make(positive={"cold": "sick", "flu": "well"}).fit(frame, y)
    values = clf.decision_function(frame)
    assert np.array_equal(clf.predict(frame) == "well", values > 0)
    own = clf.decision_function(frame, task="cold")
    assert np.array_equal(clf.predict(frame, task="cold") == "sick", own > 0)


def test_tasks_of_different_labels_have_a_value_a_label(table):
    frame, y = table
    y = np.where(frame["disease"] == "flu", np.where(y == "sick", "ill", "fit"), y)
    clf = make().fit(frame, y)
    assert clf.classes_.tolist() == ["fit", "ill", "sick", "well"]
    values = clf.decision_function(frame)
    assert values.shape == (180, 4)
    assert np.array_equal(clf.classes_[values.argmax(axis=1)], clf.predict(frame))
    assert clf.decision_function(frame, task="cold").shape == (180,)


def test_a_saved_model_still_knows_its_columns(table, tmp_path):
    frame, y = table
    clf = make().fit(frame, y)
    save_model(clf, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert np.array_equal(again.predict(frame), clf.predict(frame))
    assert clone(again).fit(frame, y).tasks_.tolist() == ["cold", "flu"]


def test_what_is_said_counts_more_than_the_column(table):
    frame, y = table
    clf = make().fit(frame, y, task=np.arange(180) % 3)
    assert clf.tasks_.tolist() == [0, 1, 2]
    assert clf.n_features_in_ == 4


def refusal(act):
    with pytest.raises(DataError) as refused:
        act()
    return str(refused.value)


def test_a_column_that_is_not_there_is_refused(table):
    frame, y = table
    assert refusal(lambda: make().fit(frame.drop(columns="site"), y)) == (
        "X has no column 'site', which names each row's node. Choose from a, b, c, d."
    )
    clf = make().fit(frame, y)
    assert refusal(lambda: clf.predict(frame.drop(columns="disease"))) == (
        "X has no column 'disease', which names each row's task. Choose from a, b, c, d, site."
    )


def test_an_array_has_no_columns(table):
    frame, y = table
    assert refusal(lambda: make().fit(frame[list("abcd")].to_numpy(), y)) == (
        "X is an array, but task_column='disease' needs a frame; "
        "give one of pandas or polars, or say task=…."
    )


def test_an_unknown_task_in_the_column_is_refused(table):
    frame, y = table
    clf = make().fit(frame, y)
    strange = frame.assign(disease="gout")
    assert refusal(lambda: clf.predict(strange)) == "Unknown task 'gout'. Choose from cold, flu."


def test_a_search_without_routing_says_what_is_missing(table):
    frame, y = table
    search = GridSearchCV(DTSVM(C=0.1), {"C": [0.1]}, cv=CV, error_score="raise", scoring="roc_auc")
    rows = frame[list("abcd")].to_numpy()
    said = refusal(lambda: search.fit(rows, y, task=frame["disease"].to_numpy()))
    assert said == (
        "The model knows several tasks (cold, flu), and decision_function was not told which: say "
        "it with task=…, or train on a frame with task_column=…. Scorers by name, such as "
        "'roc_auc', and cross_val_predict hand task on to nobody, so for them only task_column "
        "helps."
    )


@pytest.mark.parametrize(
    "y",
    [
        ["a", None, "a", "b"],
        np.array([0, np.nan, 0, 1]),
        pd.Series(["a", None, "a", "b"], dtype="string"),
        pd.Series([1, None, 1, 2], dtype="Int64"),
        pd.Categorical(["a", None, "a", "b"]),
        pl.Series(["a", None, "a", "b"]),
    ],
)
def test_a_missing_label_is_refused_with_its_row(y):
    with pytest.raises(DataError, match="The label of row 1 is missing; fill in or drop"):
        DTSVM().fit([[0.0], [1.0], [2.0], [3.0]], y)


def test_nullable_booleans_and_whole_numbers_stay_what_they_are():
    X = [[0.0], [1.0], [2.0], [3.0]]
    is_sick = pd.Series([False, False, True, True], dtype="boolean")
    assert DTSVM().fit(X, is_sick).classes_.dtype == bool
    grade = pd.Series([1, 1, 2, 2], dtype="Int64")
    assert DTSVM().fit(X, grade).predict(X[:1]).tolist() == [1]
    large = np.array([0, 1, 0, 1], np.uint64) + np.uint64(2**63)
    assert DTSVM().fit(X, grade, task=large).tasks_.tolist() == [2**63, 2**63 + 1]


def test_what_a_frame_has_beside_numbers_is_refused_with_its_column():
    sick = ["no", "yes"]
    frame = pd.DataFrame({"age": [60.5, 70.5], "ward": ["A", "B"]})
    with pytest.raises(DataError, match=r"X contains the text 'A' in column 'ward' where a number"):
        DTSVM().fit(frame, sick)
    frame["ward"] = pd.to_datetime(["2024-01-31", "2024-02-29"])
    with pytest.raises(DataError, match=r"X has dates or durations in column 'ward' where numbers"):
        DTSVM().fit(frame, sick)
    for dates in (pl.DataFrame(frame), frame[["ward"]], frame[["ward"]].to_numpy()):
        with pytest.raises(DataError, match=r"X has dates or durations in column"):
            DTSVM().fit(dates, sick)
        with pytest.raises(DataError, match=r"X has dates or durations in column"):
            Session().enter(node=0, task=0, X=dates, y=sick)
    frame.columns = ["age", "age"]
    with pytest.raises(DataError, match=r"X has 2 columns called 'age'\. Rename them\."):
        DTSVM().fit(frame, sick)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pd.period_range("2024-01", periods=2, freq="M"), "Period('2024-01', 'M')"),
        ([timedelta(1), timedelta(2)], "datetime.timedelta(days=1)"),
        ([[1, 2], [3]], "several values in one cell"),
        ([1.5, {"a": 1}], "several values in one cell"),
        ([1j, 2j], "1j"),
    ],
)
def test_whatever_else_a_frame_has_is_refused_with_its_column(column, said):
    frame = pd.DataFrame({"age": [60.5, 70.5], "stay": pd.Series(column, dtype=object)})
    fitted = DTSVM().fit(frame.assign(stay=1.0), ["no", "yes"])
    for act in (
        lambda: DTSVM().fit(frame, ["no", "yes"]),
        lambda: fitted.predict(frame),
        lambda: Session().enter(node=0, task=0, X=frame, y=["no", "yes"]),
    ):
        assert refusal(act) == (
            f"X contains {said} in column 'stay' where a number is expected; encode or drop such "
            "columns first."
        )


def test_a_column_too_many_is_named_even_if_it_is_text():
    frame = pd.DataFrame({"age": [60.5, 70.5]})
    clf = DTSVM().fit(frame, ["no", "yes"])
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*unseen.*\n- ward"):
        clf.predict(frame.assign(ward="A"))


@pytest.mark.parametrize("task", [None, ["a", "b", "b"]])
def test_labels_of_a_task_of_which_some_are_text_are_refused(task):
    y = np.array(["no", "yes", 1], object)
    with pytest.raises(DataError) as refused:
        DTSVM().fit([[0.0], [1.0], [2.0]], y, task=task)
    first = "row 0 is the text 'no'" if task is None else "row 1 is the text 'yes'"
    assert str(refused.value) == (
        f"The label of {first}, and that of row 2 is 1, no text. Write a task's labels alike."
    )


def test_columns_of_one_name_are_counted_beside_those_that_say_task_and_node(table):
    frame, y = table
    twice = pd.concat([frame, frame[["a"]]], axis=1)
    with pytest.raises(DataError, match=r"X has 2 columns called 'a'\. Rename them\."):
        DTSVM(task_column="disease", node_column="site").fit(twice, y)
