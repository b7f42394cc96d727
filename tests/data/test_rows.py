"""Rows from files: what is read from each format, and how files are put together."""

import csv
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dtsvm.data import read_rows

PLAIN = "a,b,kind,place\n1,2.5,cup,x\n-3e2,.5,plate,y\n"


@pytest.fixture
def write(tmp_path):
    def write_file(text, name="rows.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return write_file


def test_columns_get_their_roles(write):
    rows = read_rows(write(PLAIN), label="kind", node="place")
    assert rows.X.tolist() == [[1, 2.5], [-300, 0.5]]
    assert rows.X.dtype == np.float64
    assert rows.X.flags.c_contiguous
    assert rows.y.tolist() == ["cup", "plate"]
    assert rows.node.tolist() == ["x", "y"]
    assert rows.task is None
    assert rows.feature_names == ("a", "b")


def test_without_labels_y_is_none(write):
    rows = read_rows(write(PLAIN), label=None)
    assert rows.y is None
    assert rows.feature_names == ("a", "b")


def test_listed_features_keep_the_listed_order(write):
    rows = read_rows(write(PLAIN), label="kind", features=["b", "a"])
    assert rows.feature_names == ("b", "a")
    assert rows.X[0].tolist() == [2.5, 1]


def test_numeric_label_and_task_are_no_features(write):
    rows = read_rows(write("t,y,a\n1,0,5\n2,1,6\n"), label="y", task="t")
    assert rows.feature_names == ("a",)
    assert rows.task.tolist() == [1, 2]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_found(write, delimiter):
    rows = read_rows(write(PLAIN.replace(",", delimiter)), label="kind")
    assert rows.X.tolist() == [[1, 2.5], [-300, 0.5]]


def test_windows_line_ends_a_byte_order_mark_quotes_and_blank_lines_are_read(write):
    text = '\ufeff"a", b ,y\r\n"1",2, +1\r\n\r\n3, 4,-1\r\n'
    rows = read_rows(write(text), label="y")
    assert rows.feature_names == ("a", "b")
    assert rows.X.tolist() == [[1, 2], [3, 4]]
    assert rows.y.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "-1", "+1"], np.array([1, -1, 1])),
        (["0.5", "1", "2"], np.array([0.5, 1, 2])),
        (["yes", "no", "1"], np.array(["yes", "no", "1"])),
        (["007", "010", "1"], np.array(["007", "010", "1"])),
        (["2024_01", "2", "1"], np.array(["2024_01", "2", "1"])),
        (["99999999999999999999", "2", "1"], np.array(["99999999999999999999", "2", "1"])),
    ],
)
def test_labels_keep_the_type_they_are_written_in(write, texts, expected):
    rows = read_rows(write("a,y\n" + "".join(f"0,{text}\n" for text in texts)), label="y")
    assert rows.y.dtype == expected.dtype
    assert rows.y.tolist() == expected.tolist()


def test_a_column_without_any_number_is_left_out(write):
    rows = read_rows(write("id,a,note,y\n2024_1,1,,0\n2024_2,2,,1\n"), label="y")
    assert rows.feature_names == ("a",)


def test_several_files_are_nodes_named_by_their_stems(write):
    paths = [write("a,b,y\n1,2,0\n3,4,1\n", "east.csv"), write("b,a,y\n6,5,1\n", "west.csv")]
    rows = read_rows(paths, label="y")
    assert rows.node.tolist() == ["east", "east", "west"]
    assert rows.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert rows.y.tolist() == [0, 1, 1]


def test_one_file_in_a_list_is_no_node(write):
    assert read_rows([str(write(PLAIN))], label="kind").node is None


def test_a_node_column_overrules_file_names(write):
    paths = [write("a,n,y\n1,7,0\n", "east.csv"), write("a,n,y\n1,8,0\n", "west.csv")]
    assert read_rows(paths, label="y", node="n").node.tolist() == [7, 8]


def test_files_of_different_formats_go_together(write, tmp_path):
    np.savez(tmp_path / "b.npz", X=[[5.0, 6.0]], y=[1], feature_names=["a", "b"])
    rows = read_rows([write("a,b,y\n1,2,0\n", "a.csv"), tmp_path / "b.npz"], label="y")
    assert rows.X.tolist() == [[1, 2], [5, 6]]


def test_npz_arrays_are_read(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, X=np.eye(2), y=[True, False], task=["s", "t"], node=[4, 5], note=np.eye(3))
    rows = read_rows(path, label="y")
    assert rows.X.tolist() == [[1, 0], [0, 1]]
    assert rows.y.tolist() == [1, 0]
    assert rows.y.dtype == np.int64
    assert rows.task.tolist() == ["s", "t"]
    assert rows.node.tolist() == [4, 5]
    assert rows.feature_names == ("x0", "x1")


def test_npz_arrays_can_be_named(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, X=np.eye(2), label=[0.5, 1.5], school=[8, 9])
    rows = read_rows(path, label="label", task="school", features=["x1"])
    assert rows.y.tolist() == [0.5, 1.5]
    assert rows.task.tolist() == [8, 9]
    assert rows.X.tolist() == [[0], [1]]


@pytest.fixture(params=["pyarrow.parquet", "polars"])
def parquet_reader(request, monkeypatch):
    """Read Parquet with one library as if the other were not installed."""
    pytest.importorskip(request.param)
    other = {"pyarrow.parquet": "polars", "polars": "pyarrow.parquet"}[request.param]
    monkeypatch.setitem(sys.modules, other, None)


def write_parquet(path, columns):
    from pyarrow import parquet, table

    parquet.write_table(table(columns), path)
    return path


@pytest.fixture
def parquet_rows(tmp_path):
    import pyarrow as pa

    kind = pa.array(["cup", "plate"]).dictionary_encode()
    columns = {"a": [1, -300], "b": [2.5, 0.5], "kind": kind, "place": ["x", "y"]}
    columns["__index_level_0__"] = [8, 9]
    return write_parquet(tmp_path / "rows.parquet", columns)


def test_parquet_equals_csv(write, parquet_rows, parquet_reader):
    rows = read_rows(parquet_rows, label="kind", node="place")
    same = read_rows(write(PLAIN), label="kind", node="place")
    np.testing.assert_array_equal(rows.X, same.X)
    assert rows.y.tolist() == same.y.tolist()
    assert rows.node.tolist() == same.node.tolist()
    assert rows.feature_names == same.feature_names


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    X=st.lists(st.tuples(*[st.floats(-1e100, 1e100)] * 3), min_size=1, max_size=8),
    delimiter=st.sampled_from(",;\t"),
    data=st.data(),
)
def test_csv_gives_back_every_number_and_label(tmp_path, X, delimiter, data):
    words = st.text("abc ,;\"'\n\té", min_size=1, max_size=6).filter(lambda w: w.strip())
    y = data.draw(st.lists(words, min_size=len(X), max_size=len(X)))
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(["p", "q", "r", "y"])
        writer.writerows([*row, label] for row, label in zip(X, y, strict=True))
    rows = read_rows(path, label="y")
    assert rows.X.tolist() == [list(row) for row in X]
    assert rows.y.tolist() == [label.strip() for label in y]


def test_reading_csv_imports_no_data_frame_library(write):
    # scikit-learn may import pandas by itself; what counts is what we add to that.
    code = (
        "import sys, sklearn; before = set(sys.modules); from dtsvm.data import read_rows; "
        f"read_rows({str(write(PLAIN))!r}, label='kind'); "
        "heavy = {'pandas', 'polars', 'pyarrow', 'matplotlib'} & (set(sys.modules) - before); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
