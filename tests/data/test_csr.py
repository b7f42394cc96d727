"""CSR rows in npz files."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from dtsvm.data import read_records, read_rows
from dtsvm.errors import DataError


def write_csr(path, **changed):
    rows = csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    parts = {name: getattr(rows, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(path, **{**parts, "y": np.array(["a", "b"]), **changed})


def test_csr_rows_of_an_npz_file_stay_csr(tmp_path):
    write_csr(tmp_path / "rows.npz", format=b"csr")
    rows = read_rows(tmp_path / "rows.npz", label="y")
    assert rows.X.toarray().tolist() == [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]
    assert rows.X.format == "csr"
    assert rows.feature_names == ("x0", "x1", "x2")
    some = read_rows([tmp_path / "rows.npz"], label="y", features=["x2", "x0"])
    assert some.X.toarray().tolist() == [[2.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"format": b"csc"}, "its format is b'csc'"),
        ({"indices": np.array([0, 9, 1])}, "indices"),
        ({"indptr": np.array([0, 2])}, "cannot be read"),
        ({"shape": np.array([2, 2**40])}, "it claims 1,099,511,627,776 columns"),
        ({"shape": np.array([2])}, "its shape is no pair"),
        ({"data": np.array(["a", "b", "c"])}, "its values are no numbers"),
        ({"data": np.array([1.0, np.nan, 3.0])}, "row 1: a value is not finite"),
    ],
)
def test_csr_rows_that_are_none_are_refused_by_name(tmp_path, changed, words):
    write_csr(tmp_path / "rows.npz", **changed)
    with pytest.raises(DataError, match=r"rows\.npz") as error:
        read_rows(tmp_path / "rows.npz", label="y")
    assert words in str(error.value)


def test_csr_rows_are_not_prepared(tmp_path):
    write_csr(tmp_path / "rows.npz")
    with pytest.raises(DataError, match="has CSR rows, whose columns are numbers to be taken"):
        read_records(tmp_path / "rows.npz", roles={"label": "y"})
