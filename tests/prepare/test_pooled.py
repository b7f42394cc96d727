"""Preparation over a network is scikit-learn's on the pooled rows."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from dtsvm.data import Kind, agree_schemas, frame_records
from dtsvm.prepare import agreeing, apply_plan, encode, run_alone, run_together
from worlds import examples

MIN_COUNT = 3
WORDS = {"yes": 1.0, "no": 0.0}


def pooled_features(table, schema):
    """What ColumnTransformer makes of the pooled rows, by name, constants left out."""
    indicator = ("missing", MissingIndicator(features="missing-only"))
    scaled = FeatureUnion([("value", make_pipeline(SimpleImputer(), StandardScaler())), indicator])
    switch = make_pipeline(
        FunctionTransformer(lambda frame: frame.replace(WORDS).astype(float)),
        FeatureUnion([("value", SimpleImputer()), indicator]),
    )
    one_hot = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="(missing)", missing_values=None),
        OneHotEncoder(
            min_frequency=MIN_COUNT, handle_unknown="infrequent_if_exist", sparse_output=False
        ),
    )
    by_kind = {Kind.NUMBER: scaled, Kind.ZERO_ONE: switch, Kind.YES_NO: switch}
    by_kind[Kind.CATEGORY] = one_hot
    found = {}
    for column in schema.of_kind(*by_kind):
        name = column.name
        made = ColumnTransformer([(name, by_kind[column.kind], [name])])
        values = made.fit_transform(table[[name]])
        for label, feature in zip(labels_of(made, name, column, values), values.T, strict=True):
            if np.ptp(feature) > 0:
                found[label] = feature
    return found


def labels_of(made, name, column, values):
    if column.kind is not Kind.CATEGORY:
        return [name, f"{name}=(missing)"][: values.shape[1]]
    encoder = made.named_transformers_[name].steps[-1][1]
    rare = [] if encoder.infrequent_categories_[0] is None else encoder.infrequent_categories_[0]
    kept = [level for level in encoder.categories_[0] if level not in set(rare)]
    return [f"{name}={level}" for level in [*kept, *(["(other)"] if len(rare) else [])]]


@st.composite
def tables(draw):
    """A table of mixed columns with gaps, and the node of each row."""
    n = draw(st.integers(2, 40))
    gaps = st.floats(0, 1)
    columns = {}
    for j in range(draw(st.integers(1, 5))):
        values = draw(
            st.sampled_from(
                [
                    st.floats(-1e6, 1e6).map(lambda x: round(x, 3)),
                    st.integers(0, 4).map(float),
                    st.sampled_from([0.0, 1.0]),
                    st.sampled_from(["yes", "no"]),
                    st.sampled_from(["A", "B", "C", "D", "E"]),
                ]
            )
        )
        cells = draw(st.lists(values, min_size=n, max_size=n))
        share = draw(st.sampled_from([0.0, 0.0, 0.3]))
        holes = draw(st.lists(gaps, min_size=n, max_size=n)) if share else [1.0] * n
        columns[f"c{j}"] = [None if h < share else v for v, h in zip(cells, holes, strict=True)]
    node = draw(st.lists(st.sampled_from(["north", "south", "west"]), min_size=n, max_size=n))
    return columns, np.array(node), draw(st.permutations(list(columns)))


def frame(columns):
    plain = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    return plain.where(plain.notna(), None)


def network_features(columns, node, order):
    """Agree node by node, the second node with its columns in another order."""
    whole = frame(columns)
    rows = {
        name: frame_records(whole.loc[node == name, order if name == "south" else list(columns)])
        for name in dict.fromkeys(node)
    }
    schema = agree_schemas({name: part.schema for name, part in rows.items()})
    encoded = {name: encode(part, schema) for name, part in rows.items()}
    plan = run_together([agreeing(part, MIN_COUNT) for part in encoded.values()])
    X = np.empty((len(node), len(plan.names)))
    for name, part in rows.items():
        X[node == name] = apply_plan(plan, encode(part, plan.schema))
    return plan, X, schema


@examples(80)
@given(tables())
def test_preparation_over_a_network_is_that_of_the_pooled_rows(case):
    columns, node, order = case
    try:
        plan, X, schema = network_features(columns, node, order)
    except ValueError as error:
        assert "No column is left to make a feature of." in str(error)  # noqa: PT017
        return
    whole = frame(columns)
    for column in schema.of_kind(Kind.NUMBER):
        whole[column.name] = whole[column.name].astype(float)
    expected = pooled_features(whole, schema)
    assert set(plan.names) == set(expected)
    for name, values in zip(plan.names, X.T, strict=True):
        np.testing.assert_allclose(values, expected[name], rtol=1e-10, atol=1e-10)


def test_the_second_sum_takes_the_means_out_before_it_squares():
    x = 1e9 + np.arange(50) % 7 / 8
    rows = frame_records({"x": x})
    plan = run_alone(agreeing(encode(rows, rows.schema)), lambda vector: vector)
    assert np.isclose(plan.features[0].scale, np.std(x - 1e9), rtol=1e-6)
