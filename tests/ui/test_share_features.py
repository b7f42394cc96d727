import numpy as np
import pytest

from dtsvm.data.records import table_records
from dtsvm.data.tables import Table
from dtsvm.prepare import encode
from dtsvm.prepare.agree import measure_counts, measure_spread
from dtsvm.ui import share_features
from dtsvm.ui.share_features import NodeRows, Part, regroup


def records(path, n=53, is_sorted=False):
    rng = np.random.default_rng(3)
    node = rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.3, 0.1, 0.1])
    columns = {
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(50, 10, n)),
        "ward": rng.choice(["A", "B"], n).astype(object),
        "flag": rng.integers(0, 2, n),
        "node": np.sort(node) if is_sorted else node,
        "y": rng.integers(0, 2, n),
    }
    table = Table(path, columns, tuple(columns), n)
    return table_records(table, {"label": "y", "node": "node"}, None, {})


@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("is_held", [False, True])
def test_a_node_cut_into_blocks_has_the_sums_of_the_whole(
    tmp_path, monkeypatch, is_sorted, is_held
):
    monkeypatch.setattr(share_features, "_block_rows", lambda schema: 8)  # node a lies in several
    whole = records(tmp_path, is_sorted=is_sorted)
    schema, node = whole.schema, whole.node
    encoded = encode(whole, schema)
    group = regroup(Part(0, tmp_path, "rows", None, None, False), whole, schema, "refuse")
    assert not {"age", "ward", "flag"} & set(whole.table.columns)  # let go of
    held = np.random.default_rng(0).random(len(node)) < (0.3 if is_held else 0.0)
    means = np.full(2, 0.4)
    assert [name for name, _, _ in group.nodes()] == ["a", "b", "c", "d"]
    for name, first, end in group.nodes():
        rows = NodeRows(schema, group.pieces(first, end), ~held[first:end])
        index = np.flatnonzero(node == name)[~held[first:end]]
        other = encoded.take(index)
        assert rows.n_rows == other.n_rows
        assert measure_counts(rows).tobytes() == measure_counts(other).tobytes()
        assert measure_spread(rows, means).tobytes() == measure_spread(other, means).tobytes()
