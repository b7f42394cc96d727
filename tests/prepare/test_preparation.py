"""The transformer: what it leaves out and says, what it stores, what it refuses."""

import contextlib
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from dtsvm import Preparation
from dtsvm.data import frame_records
from dtsvm.errors import DataError, ModelFileError, ParameterError, StrangeRowsWarning
from dtsvm.prepare import Plan, agreeing, encode, run_alone


def table(n=40, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.normal(60, 10, n)
    age[::7] = np.nan
    return pd.DataFrame(
        {
            "patient_id": np.arange(1000, 1000 + n),
            "age": age,
            "smoker": rng.choice(["yes", "no"], n),
            "ward": rng.choice(["A", "B", "C"], n),
            "seen": pd.date_range("2024-01-01", periods=n).astype(str),
            "country": "DK",
            "limbs": 4.0,
        }
    )


def test_what_is_left_out_is_said():
    made = Preparation(min_count=5).fit(table())
    assert made.notes_ == (
        "Column 'patient_id' looks like an identifier and is left out; declare its kind to use it.",
        "Column 'seen' holds dates or times and is left out; make a number of it to use it.",
        "Column 'country' is 'DK' in every row; it is left out.",
        "Column 'limbs' is 4 wherever it has a value; it is left out.",
    )
    assert made.get_feature_names_out().tolist() == [
        "age", "age=(missing)", "smoker", "ward=A", "ward=B", "ward=C",
    ]  # fmt: skip


def test_a_column_in_another_unit_is_said_once_with_both_ranges():
    heights = np.linspace(1.5, 1.95, 40)
    made = Preparation().fit({"height": heights, "share": heights / 2})
    strange = {"height": 100 * heights[:3], "share": heights[:3] / 200}
    with pytest.warns(StrangeRowsWarning) as said:
        made.transform(strange)
    assert [str(one.message) for one in said] == [
        "X has 'height' from 150 to 152; trained on were 1.73 ± 0.133, all below 2. Convert it if "
        "it is in another unit. Likewise 'share'."
    ]


@pytest.mark.parametrize("spread", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 20])
def test_other_rows_of_the_same_kind_are_in_the_same_unit(rng, spread, n):
    draw = lambda k: np.exp(spread * rng.normal(size=k))  # noqa: E731
    for _ in range(30):
        made = Preparation().fit({"dose": draw(200)})
        made.transform({"dose": draw(n)})  # warnings are errors here
        made.transform({"dose": [0.0, np.nan]})


def test_a_column_that_no_feature_needs_may_hold_anything():
    made = Preparation().fit({"age": [60.0, 70.0]})
    expected = made.transform({"age": [65.0]}).tolist()
    assert made.transform({"age": [65.0], "size": ["1,234"], "more": [[1, 2]]}).tolist() == expected


def test_a_matrix_with_more_columns_and_a_frame_without_rows_are_refused():
    made = Preparation().fit(np.arange(10.0).reshape(5, 2) ** 2)
    with pytest.raises(
        DataError, match=r"X has 3 columns, but features are made of 2\. Give these"
    ):
        made.transform(np.ones((1, 3)))
    with pytest.raises(DataError, match=r"which has no rows yet\. Give X\.collect\(\)\."):
        Preparation().fit(pl.LazyFrame({"age": [1.5, 2.5]}))


def test_rare_and_unseen_levels_go_together():
    ward = ["A"] * 12 + ["B"] * 12 + ["C", "D", None]
    made = Preparation().fit({"ward": np.array(ward, object)})
    assert made.get_feature_names_out().tolist() == ["ward=A", "ward=B", "ward=(other)"]
    assert made.notes_ == (
        "Column 'ward': 3 of 5 levels have fewer than 10 rows and go together as (other).",
    )
    new = np.array(["C", "never seen", None, "B"], object)
    assert made.transform({"ward": new}).tolist() == [[0, 0, 1]] * 3 + [[0, 1, 0]]


def test_an_unseen_level_is_no_level_where_none_was_rare():
    made = Preparation(min_count=1).fit({"ward": ["A", "B", "A"]})
    assert made.transform({"ward": ["C", "A", "B"]}).tolist() == [[0, 0], [1, 0], [0, 1]]


def test_categories_that_are_mostly_unseen_or_spelled_otherwise_are_said():
    wards = ["north", "south"] * 10
    made = Preparation().fit({"ward": wards})
    said = (
        "X has {!r} as 'ward' in {} of {} rows; features are made of north, south. Write it alike "
        "if it is one of these."
    )
    with pytest.warns(StrangeRowsWarning, match=re.escape(said.format("N", 2, 3))):
        made.transform({"ward": ["N", "N", "south"]})
    with pytest.warns(StrangeRowsWarning, match=re.escape(said.format("South", 1, 21))):
        made.transform({"ward": [*wards, "South"]})
    made = Preparation().fit({"ward": [*wards, "attic"]})  # there were rare ones
    made.transform({"ward": ["cellar", None]})


def test_columns_are_found_by_name_and_extra_ones_ignored():
    rows = table()
    made = Preparation().fit(rows)
    turned = rows[list(reversed(rows.columns))].assign(extra="x")
    assert np.array_equal(made.transform(turned), made.transform(rows))


def test_a_missing_column_is_refused_or_filled():
    rows = table()
    with pytest.raises(DataError, match="X has no column 'age', which features are made of"):
        Preparation().fit(rows).transform(rows.drop(columns="age"))
    made = Preparation(missing_columns="impute").fit(rows)
    X = made.transform(rows.drop(columns="age"))
    assert X[:, 0].tolist() == [0.0] * len(rows)
    assert X[:, 1].tolist() == [1.0] * len(rows)


def test_a_column_that_was_left_out_is_not_asked_for():
    rows = {"age": [60.5, 70.5], "land": ["DE", "DE"], "batch": [1, 1]}
    made = Preparation(min_count=1).fit(rows)
    assert made.get_feature_names_out().tolist() == ["age"]
    assert made.transform({"age": [70.5]}).tolist() == [[1.0]]
    assert made.transform({"age": [70.5], "batch": ["x"]}).tolist() == [[1.0]]


def test_another_unit_than_in_training_is_refused():
    made = Preparation().fit({"dose (mg)": [1.5, 2.5]})
    assert made.transform({"dose": [2.5]}).tolist() == [[1.0]]
    with pytest.raises(DataError) as refused:
        made.transform({"dose [g]": [2.5]})
    assert str(refused.value) == "X has 'dose' in g; features are made of it in mg. Convert it."


def test_a_word_in_a_column_of_numbers_is_refused_at_prediction():
    made = Preparation().fit({"age": [60.5, 70.5]})
    with pytest.raises(DataError, match=r"X, row 2: column 'age' has 'old', which is not a number"):
        made.transform({"age": np.array(["61", "old"], object)})


def test_a_plan_survives_json():
    made = Preparation(min_count=3).fit(table(), node=np.arange(40) % 3)
    again = Preparation.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again.plan_ == made.plan_
    assert again.min_count == 3
    assert np.array_equal(again.transform(table(seed=1)), made.transform(table(seed=1)))


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.pop("features"),
        lambda d: d["features"][0].update(mean=float("nan")),
        lambda d: d["features"][0].update(column="nowhere"),
        lambda d: d["features"].clear(),
        lambda d: d["columns"][0].update(kind="strange"),
        lambda d: d.update(columns=3),
    ],
)
def test_a_damaged_plan_is_refused(damage):
    content = Preparation().fit(table()).to_dict()
    damage(content)
    with pytest.raises(ModelFileError, match="Train again"):
        Plan.from_dict(content)


def test_weights_in_the_columns_own_units_give_the_same_values():
    rows = table()[["age", "smoker"]].fillna({"age": 60.0})
    made = Preparation().fit(rows)
    coef, intercept = np.array([2.0, -3.0]), 0.5
    weights, bias = made.plan_.original(coef, intercept)
    raw = np.column_stack([rows["age"], rows["smoker"] == "yes"])
    np.testing.assert_allclose(raw @ weights + bias, made.transform(rows) @ coef + intercept)


def test_sparse_features_are_the_same_but_for_the_means():
    rows = table()
    dense, sparse = Preparation().fit(rows), Preparation(sparse=True).fit(rows)
    X = sparse.transform(rows)
    assert issparse(X)
    assert X.format == "csr"
    shift = np.array([f.mean / f.scale if f.scale else 0.0 for f in dense.plan_.features])
    np.testing.assert_allclose(X.toarray(), dense.transform(rows) + shift)
    again = Preparation.from_dict(json.loads(json.dumps(sparse.to_dict())))
    assert (again.transform(rows) != X).nnz == 0
    coef = np.arange(1.0, X.shape[1] + 1)
    weights, bias = sparse.plan_.original(coef, 0.5)
    assert bias == 0.5
    assert weights[0] == coef[0] / sparse.plan_.features[0].scale


def test_it_is_a_transformer_like_any_other():
    made = clone(Preparation(kinds={"ward": "category"}, min_count=2))
    y = np.arange(40) % 2
    pipeline = make_pipeline(made, LinearSVC()).fit(table(), y)
    assert set(pipeline.predict(table())) <= {0, 1}


def test_a_node_supplies_its_own_total():
    """What an agent does: its vector goes out, the network's sum comes back."""
    north, south = table(20, 1).drop(columns="seen"), table(30, 2).drop(columns="seen")
    pooled = Preparation(min_count=2).fit(pd.concat([north, south], ignore_index=True))
    both = frame_records(pd.concat([north, south], ignore_index=True))
    other = agreeing(encode(both.take(np.arange(20, 50)), both.schema), 2)
    heard = [next(other)]

    def total(vector):
        summed = vector + heard[-1]
        with contextlib.suppress(StopIteration):
            heard.append(other.send(summed))
        return summed

    plan = run_alone(agreeing(encode(both.take(np.arange(20)), both.schema), 2), total)
    assert plan.names == pooled.plan_.names
    for one, same in zip(plan.features, pooled.plan_.features, strict=True):
        assert np.isclose(one.mean, same.mean, rtol=1e-12)
        assert np.isclose(one.scale, same.scale, rtol=1e-12)


def test_nothing_to_make_features_of_is_refused():
    with pytest.raises(DataError, match="No column is left to make a feature of"):
        Preparation().fit({"country": ["DK", "DK"]})


def test_parameters_out_of_range_are_refused():
    with pytest.raises(ParameterError, match="'min_count' parameter of Preparation must be a pos"):
        Preparation(min_count=0).fit({"a": [1.5, 2.5]})
    with pytest.raises(ParameterError, match="'missing_columns' parameter of Preparation must be"):
        Preparation(missing_columns="drop").fit({"a": [1.5, 2.5]})
    with pytest.raises(DataError, match="X has 2 rows, but node has 3"):
        Preparation().fit({"a": [1.5, 2.5]}, node=[1, 2, 3])


def test_frames_that_cannot_be_taken_apart_are_refused():
    twice = pd.DataFrame([[1.5, 2.5], [3.5, 4.5]], columns=["a", "a"])
    with pytest.raises(DataError, match=r"X has 2 columns called 'a'\. Rename them\."):
        Preparation().fit(twice)
    with pytest.raises(DataError, match="X has 2 columns called '1'"):
        Preparation().fit({1: [1.5, 2.5], "1": [1.5, 2.5]})
    with pytest.raises(DataError, match="X is sparse, whose columns are numbers"):
        Preparation().fit(csr_array(np.eye(3)))
    with pytest.raises(DataError, match="X has no columns"):
        Preparation().fit({})


def test_a_kind_for_a_column_that_is_not_there_is_refused():
    with pytest.raises(ParameterError, match="no column 'wrd' to declare as 'category'"):
        Preparation(kinds={"wrd": "category"}).fit({"ward": [1.5, 2.5]})


def test_an_arrow_table_is_a_frame():
    rows = table()
    arrow = pytest.importorskip("pyarrow").Table.from_pandas(rows)
    made = Preparation().fit(rows)
    assert np.array_equal(Preparation().fit(arrow).transform(arrow), made.transform(rows))
