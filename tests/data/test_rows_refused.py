"""Files that cannot be used: each is refused with one sentence that says where and what next."""

import sys

import numpy as np
import pytest

from dtsvm.data import read_rows
from dtsvm.errors import DataError, MissingExtraError, ParameterError


@pytest.fixture
def refusal(tmp_path, monkeypatch):
    """Read rows in the temporary folder, so that sentences show bare file names."""
    monkeypatch.chdir(tmp_path)

    def read(files, kind=DataError, label="y", **options):
        for name, text in files.items():
            if isinstance(text, bytes):
                (tmp_path / name).write_bytes(text)
            elif text is not None:
                (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(kind) as caught:
            read_rows(list(files), label=label, **options)
        return str(caught.value)

    return read


CSV_CASES = {
    "an empty file": ("", "rows.csv is empty. Give a file with rows."),
    "a header alone": ("a,y\n", "rows.csv has columns but no rows. Give a file with rows."),
    "a blank header": (
        "\na,y\n1,0\n",
        "rows.csv, line 1 is blank. Put the column names on the first line.",
    ),
    "no header": (
        "1,2\n3,4\n",
        "rows.csv, line 1 holds only numbers, no column names. Put the names on the first line.",
    ),
    "an unnamed column": (
        ",a,y\n0,1,1\n",
        "rows.csv, line 1: column 1 has no name. Name it, or remove it "
        "(pandas writes no such column with index=False).",
    ),
    "a repeated name": (
        "a,b,a,y\n0,1,1,1\n",
        "rows.csv, line 1: 2 columns are called 'a'. Rename them.",
    ),
    "a short row": (
        "a,b,y\n1,2,0\n\n1,2\n",
        "rows.csv, line 4: expected 3 columns, got 2. "
        "Give every row one value for each column name.",
    ),
    "a long row": (
        "a,b,y\n1,2,x,w,z\n",
        "rows.csv, line 2: expected 3 columns, got 5. "
        "Give every row one value for each column name.",
    ),
    "a decimal comma between commas": (
        "a,b,y\n1,2,0,9\n",
        "rows.csv, line 2: expected 3 columns, got 4. Give every row one value for each column "
        "name; a decimal comma needs quotes, or semicolons between values.",
    ),
    "a word among numbers": (
        "a,b,y\n1,2,0\n1,two,1\n",
        "rows.csv, line 3: column 'b' has 'two', which is not a number. "
        "Mend the value, or list the columns to use as features.",
    ),
    "a gap": (
        "a,b,y\n1,,0\n1,2,1\n",
        "rows.csv, line 2: column 'b' has no value. Fill it in, remove the row, or let "
        "Preparation fill it.",
    ),
    "NaN": (
        "a,y\n1,0\nNaN,1\n",
        "rows.csv, line 3: column 'a' has nan, which is not a finite number. "
        "Fill it in or remove the row.",
    ),
    "infinity": (
        "a,y\n-inf,0\n",
        "rows.csv, line 2: column 'a' has -inf, which is not a finite number. "
        "Fill it in or remove the row.",
    ),
    "a missing label": (
        "a,y\n1,0\n2, \n",
        "rows.csv, line 3: column 'y' has no value. Every row needs a label; "
        "fill it in or remove the row.",
    ),
    "a label without end": (
        "a,y\n1,0\n2,1e400\n",
        "rows.csv, line 3: column 'y' has inf, which is no label. Mend it.",
    ),
    "words alone": (
        "city,y\nRome,0\n",
        "rows.csv has no column of numbers to use as a feature. Add one.",
    ),
    "an open quote": (
        'a,y\n1,0\n"2,1\n',
        "rows.csv, line 3: a quote is opened here and not closed until line 3. Close it or, if the "
        "file ends too early, copy it again.",
    ),
    "another encoding": (
        "a,y\n1,caf\xe9\n".encode("latin-1"),
        "rows.csv, line 2: byte 0xe9 is not UTF-8 text. Save the file as UTF-8.",
    ),
}


@pytest.mark.parametrize("case", CSV_CASES)
def test_a_csv_file_is_refused_for(case, refusal):
    content, sentence = CSV_CASES[case]
    assert refusal({"rows.csv": content}) == sentence


def test_an_absent_file_is_refused(refusal):
    assert refusal({"rows.csv": None}) == "There is no file rows.csv. Check the path."


def test_a_directory_is_refused(refusal, tmp_path):
    (tmp_path / "rows.csv").mkdir()
    assert refusal({"rows.csv": None}) == "rows.csv is not a file. Name the files to read."


def test_a_file_that_fails_to_open_is_refused(refusal, monkeypatch, tmp_path):
    def refuse(path, **options):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "rows.csv").write_text("a,y\n1,0\n")
    monkeypatch.setattr("pathlib.Path.open", refuse)
    assert refusal({"rows.csv": None}) == "rows.csv cannot be read: Permission denied."


def test_an_unsupported_suffix_is_refused(refusal):
    assert refusal({"rows.xlsx": "a"}) == (
        "rows.xlsx has the unsupported suffix '.xlsx'. Save it as CSV in the program that made it."
    )


def test_no_files_are_refused(refusal):
    assert refusal({}) == "No files were given. Name at least one."


GOOD = "age,width,label\n1,2,0\n"


def test_an_unknown_column_is_refused(refusal):
    assert refusal({"rows.csv": GOOD}, label="Label") == (
        "rows.csv has no column 'Label' for the label. "
        "Choose from age, width, label. Did you mean 'label'?"
    )
    assert refusal({"rows.csv": GOOD}, label="label", task="hospital") == (
        "rows.csv has no column 'hospital' for the task. Choose from age, width, label."
    )
    assert refusal({"rows.csv": GOOD}, label="label", features=["widht"]) == (
        "rows.csv has no column 'widht' for a feature. "
        "Choose from age, width, label. Did you mean 'width'?"
    )


def test_a_listed_feature_must_be_all_numbers(refusal):
    assert refusal({"rows.csv": "a,city,y\n1,Rome,0\n"}, features=["city"]) == (
        "rows.csv, line 2: column 'city' has 'Rome', which is not a number. "
        "Mend the value, or list the columns to use as features."
    )


def test_the_label_cannot_be_a_feature(refusal):
    sentence = refusal({"rows.csv": GOOD}, ParameterError, label="label", features=["label"])
    assert sentence == "Column 'label' is the label, so it cannot be a feature."


def test_features_must_be_a_list_of_different_names(refusal):
    assert refusal({"rows.csv": GOOD}, ParameterError, label="label", features="age") == (
        "features must be a list of column names. Got 'age' instead."
    )
    sentence = refusal({"rows.csv": GOOD}, ParameterError, label="label", features=["age"] * 2)
    assert sentence == "features lists 'age' 2 times. List it once."


def test_files_with_different_columns_are_refused(refusal):
    files = {"a.csv": "p,q,y\n1,2,0\n", "b.csv": "p,r,s,y\n1,2,3,0\n"}
    assert refusal(files) == (
        "a.csv and b.csv have different feature columns: only a.csv has q; only b.csv has r, s. "
        "List the columns they share as features."
    )


def test_files_of_one_name_cannot_be_two_nodes(refusal):
    files = {"east.csv": "p,y\n1,0\n", "east.tsv": "p,y\n1,0\n"}
    assert refusal(files) == (
        "2 files are called 'east', so their names cannot tell their nodes apart. "
        "Rename them, or name a node column."
    )


def npz(tmp_path, name="rows.npz", **arrays):
    np.savez(tmp_path / name, **arrays)
    return {name: None}


def test_an_npz_file_without_a_matrix_X_is_refused(refusal, tmp_path):
    assert refusal(npz(tmp_path, y=[1])) == (
        "rows.npz has no array 'X'. Store the features as X, one row a sample."
    )
    assert refusal(npz(tmp_path, X=[1.0], y=[1])) == (
        "rows.npz has an array 'X' of shape (1,). Store the features as X, one row a sample."
    )


def test_npz_arrays_of_different_lengths_are_refused(refusal, tmp_path):
    assert refusal(npz(tmp_path, X=np.eye(3), y=[1, 0])) == (
        "rows.npz: X has 3 rows, but y has shape (2,)."
    )


def test_npz_features_that_are_not_finite_are_refused(refusal, tmp_path):
    assert refusal(npz(tmp_path, X=[[1.0], [np.nan]], y=[1, 0])) == (
        "rows.npz, row 2: column 'x0' has nan, which is not a finite number. "
        "Fill it in or remove the row."
    )


def test_pickled_arrays_are_never_opened(refusal, tmp_path):
    assert refusal(npz(tmp_path, X=np.eye(1), y=np.array([{}], dtype=object))) == (
        "rows.npz, array 'y' cannot be read: Object arrays cannot be loaded when "
        "allow_pickle=False. Save plain arrays of numbers or strings with numpy.savez."
    )


def test_feature_names_must_fit_X(refusal, tmp_path):
    assert refusal(npz(tmp_path, X=np.eye(2), y=[0, 1], feature_names=["a", "a"])) == (
        "rows.npz: X has 2 columns, but feature_names has 1 different names."
    )
    assert refusal(npz(tmp_path, X=np.eye(2), y=[0, 1], feature_names=["a", "y"])) == (
        "rows.npz has both a feature and an array called 'y'. Rename one."
    )


def test_a_file_that_is_no_npz_is_refused(refusal):
    assert refusal({"rows.npz": "hello"}) == (
        "rows.npz is not an npz file. Write it with numpy.savez."
    )


def test_one_npz_file_without_tasks_among_others_is_refused(refusal, tmp_path):
    files = npz(tmp_path, "a.npz", X=[[1.0]], y=[1], task=[1])
    files |= npz(tmp_path, "b.npz", X=[[1.0]], y=[1])
    assert refusal(files) == "b.npz has no task for its rows, but other files have. Add it."


def test_a_null_in_parquet_is_refused(refusal, tmp_path):
    from pyarrow import parquet, table

    parquet.write_table(table({"a": [1, 2], "y": ["u", None]}), tmp_path / "rows.parquet")
    assert refusal({"rows.parquet": None}) == (
        "rows.parquet, row 2: column 'y' has no value. Every row needs a label; "
        "fill it in or remove the row."
    )


def test_a_file_that_is_no_parquet_is_refused(refusal):
    sentence = refusal({"rows.parquet": "hello, this is not a table"})
    assert sentence.startswith("rows.parquet cannot be read as Parquet: ")
    assert sentence.endswith(". Write it again.")


def test_parquet_without_a_library_says_what_to_install(refusal, monkeypatch):
    for name in ("pyarrow.parquet", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    assert refusal({"rows.parquet": "PAR1"}, MissingExtraError) == (
        "Reading rows.parquet needs pyarrow or polars, and neither is installed. "
        'Install them with: pip install "dtsvm[frames]"'
    )


def test_of_many_columns_only_some_are_listed(refusal):
    header = ",".join(f"pixel{j}" for j in range(100))
    values = ",".join("0" for _ in range(100))
    assert refusal({"rows.csv": f"{header}\n{values}\n"}) == (
        "rows.csv has no column 'y' for the label. Choose from pixel0, pixel1, pixel2, pixel3, "
        "pixel4, pixel5, pixel6, pixel7, pixel8, pixel9, pixel10, pixel11 and 88 more."
    )
