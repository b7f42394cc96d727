"""Bad files: each is refused in one sentence that names file, place and remedy."""

import gzip
import io
import os
import stat
import subprocess
import zipfile

import numpy as np
import pandas as pd
import pytest

HEADER = "age,dose,ward,sick\n"
GOOD = HEADER + "".join(f"{40 + i}.5,{i % 4}.5,{'AB'[i % 2]},{i % 2}\n" for i in range(12))


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def liar():
    """An npz whose X claims 73 TiB."""
    header = io.BytesIO()
    claim = {"descr": "<f8", "fortran_order": False, "shape": (10_000_000, 1_000_000)}
    np.lib.format.write_array_header_1_0(header, claim)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("X.npy", header.getvalue() + bytes(80))
    return file.getvalue()


def replaced(old, new):
    return GOOD.replace(old, new, 1)


# What is wrong: the content, and what is said about it.
CSV = {
    "an empty file": ("", "a.csv is empty. Give a file with rows."),
    "a header alone": (HEADER, "a.csv has columns but no rows. Give a file with rows."),
    "a blank first line": (
        "\n" + GOOD,
        "a.csv, line 1 is blank. Put the column names on the first line.",
    ),
    "no header": (
        "1,2,3\n4,5,6\n",
        "a.csv, line 1 holds only numbers, no column names. Put the names on the first line.",
    ),
    "an unnamed column": (
        "," + GOOD,
        "a.csv, line 1: column 1 has no name. Name it, or remove it (pandas writes no such column "
        "with index=False).",
    ),
    "a name twice": (
        GOOD.replace("dose", "age", 1),
        "a.csv, line 1: 2 columns are called 'age'. Rename them.",
    ),
    "300,000 columns": (
        ",".join(f"c{i}" for i in range(300_000)) + "\n",
        "a.csv, line 1 names 300,000 columns; at most 100,000 can be read. Leave out what is not "
        "needed, or turn rows into columns.",
    ),
    "a short row": (
        GOOD + "50.5,1.5,A\n",
        "a.csv, line 14: expected 4 columns, got 3. Give every row one value for each column name.",
    ),
    "a long row": (
        GOOD + "50.5,x,y,z,A,1\n",
        "a.csv, line 14: expected 4 columns, got 6. Give every row one value for each column name.",
    ),
    "decimal commas between commas": (
        GOOD + "50,5,1,5,A,1\n",
        "a.csv, line 14: expected 4 columns, got 6. Give every row one value for each column name; "
        "a decimal comma needs quotes, or semicolons between values.",
    ),
    "an open quote": (
        GOOD + '"50.5,1.5,A,1\n',
        "a.csv, line 14: a quote is opened here and not closed until line 14. Close it or, if the "
        "file ends too early, copy it again.",
    ),
    "an open quote far above": (
        GOOD.replace("41.5", '"41.5', 1),
        "a.csv, line 3: a quote is opened here and not closed until line 13. Close it or, if the "
        "file ends too early, copy it again.",
    ),
    "a copy that broke off": (
        "age,sick\n" + "41.5,yes\n42.5,no\n" * 30 + "43.5,ye",
        "a.csv, line 62: the file ends inside this line, with 'ye' in column 'sick'; no other row "
        "has the like. Copy the file again or, if it is whole, end its last line.",
    ),
    "text after a quote": (
        GOOD + '"50.5"x,1.5,A,1\n',
        "a.csv, line 14: ',' expected after '\"'. Mend the line.",
    ),
    "a word among decimal commas": (
        GOOD.replace(",", ";").replace(".5", ",5").replace("43,5", "old", 1),
        "a.csv, line 5: column 'age' has 'old', which is not a number. Mend it, or declare the "
        "column a category.",
    ),
    "a word among percents": (
        GOOD.replace(".5,", ".5%,").replace("43.5%", "old", 1),
        "a.csv, line 5: column 'age' has 'old', which is not a number. Mend it, or declare the "
        "column a category.",
    ),
    "Latin-1": (
        (GOOD + "50.5,1.5,Caf\xe9,1\n").encode("latin-1"),
        "a.csv, line 14: byte 0xe9 is not UTF-8 text. Save the file as UTF-8.",
    ),
    "half of UTF-16": (
        GOOD.encode("utf-16")[:-1],
        "a.csv is not whole UTF-16-LE text. Save it as UTF-8.",
    ),
    "a NUL byte": (
        GOOD + "50.5,1.5,A\0,1\n",
        "a.csv, line 14: a NUL byte; is this text? Save it as UTF-8.",
    ),
    "a word among numbers": (
        replaced("41.5", "old"),
        "a.csv, line 3: column 'age' has 'old', which is not a number. Mend it, or declare the "
        "column a category.",
    ),
    "a number with its unit": (
        replaced("41.5", "41.5 years"),
        "a.csv, line 3: column 'age' has '41.5 years', which is not a number. Mend it, or declare "
        "the column a category.",
    ),
    "two ways to write a number": (
        GOOD.replace(",", ";").replace("41.5", "41,5"),
        "a.csv, line 3: column 'age' has '41,5', which is not a number. Mend it, or declare the "
        "column a category.",
    ),
    "thousands or decimals": (
        "age;dose;sick\n1,234;1;0\n2,500;2;1\n",
        "a.csv, line 2: column 'age' has '1,234', which may mean 1234 or 1.234. Write it without "
        "the comma, or with a point.",
    ),
    "points beside decimal commas": (
        "age;dose;sick\n61,5;1.234;0\n62,5;2.500;1\n",
        "a.csv, line 2: column 'dose' has '1.234', which may mean thousands, as column 'age' is "
        "written with commas. Write it without the point, or as a decimal comma.",
    ),
    "infinity": (
        replaced("41.5", "inf"),
        "a.csv, line 3: column 'age' has inf, which is not a finite number. Fill it in or remove "
        "the row.",
    ),
    "1e160": (
        replaced("41.5", "1e160"),
        "a.csv, line 3: column 'age' has 1e+160, beyond ±1e+100. Use a larger unit or mend the "
        "value.",
    ),
    "a missing label": (
        replaced(",B,1", ",B,"),
        "a.csv, line 3: column 'sick' has no value. Every row needs a label; fill it in or remove "
        "the row.",
    ),
    "a label that says it is missing": (
        replaced(",B,1", ",B,NA"),
        "a.csv, line 3: column 'sick' has no value. Every row needs a label; fill it in or remove "
        "the row.",
    ),
    "a label in two spellings": (
        GOOD.replace(",0\n", ",no\n").replace(",1\n", ",yes\n").replace(",no\n", ",No\n", 1),
        "a.csv, line 4: column 'sick' has 'no', and elsewhere 'No'. Write them alike.",
    ),
    "percent and shares": (
        "sat,dose,sick\n97%,1.5,0\n0.93,2.5,1\n0.91,2.5,1\n",
        "a.csv, line 2: column 'sat' has '97%', which is not a number. Mend it, or declare the "
        "column a category.",
    ),
    "a line above the header": (
        "# exported on Monday\n" + GOOD,
        "a.csv, line 2: expected 1 columns, got 4. Give every row one value for each column name; "
        "is the first line a title? Then remove it.",
    ),
    "a title above the header": (
        "Report,,,\n" + GOOD,
        "a.csv, line 1: column 2 has no name. Name it, or remove it (pandas writes no such column "
        "with index=False).",
    ),
    "a total below the rows": (
        GOOD + "Total,,,\n",
        "a.csv, line 14: column 'age' has 'Total', which is not a number. Mend it, or declare the "
        "column a category.",
    ),
    "a comma at every end": (
        GOOD.replace("\n", ",\n"),
        "a.csv, line 1: column 5 has no name. Name it, or remove it (pandas writes no such column "
        "with index=False).",
    ),
    "no such label": (
        GOOD.replace("sick", "ill", 1),
        "a.csv has no column 'sick' for the label. Choose from age, dose, ward, ill.",
    ),
    "one label only": (
        GOOD.replace(",0\n", ",1\n"),
        "a.csv: column 'sick' has only the label 1. A classifier needs rows of two; name another "
        "column with --label, or add rows.",
    ),
    "nothing to learn from": (
        "country,sick\nDK,0\nDK,1\n",
        "No column is left to make a feature of. Column 'country' is 'DK' in every row; it is "
        "left out.",
    ),
    "labels alone": (
        "sick\n0\n1\n",
        "No column is left to make a feature of. Give columns beside label, task and node.",
    ),
    "a web page": (
        "<!DOCTYPE html>\n<html><body>Log in</body></html>\n",
        "a.csv has no column 'sick' for the label. Choose from <!DOCTYPE html>.",
    ),
    "another alphabet's comma": (
        GOOD.replace(",", "、"),
        "a.csv has no column 'sick' for the label. Choose from age、dose、ward、sick.",
    ),
    "a spreadsheet called CSV": (
        b"PK\x03\x04 and more",
        "a.csv is no text but a zip archive or a spreadsheet. Unzip it, or save it as CSV.",
    ),
}

OTHERS = {
    "a cut gzip": (
        "a.csv.gz",
        gzip.compress(GOOD.encode())[:-9],
        "a.csv.gz is gzip, but cut short or damaged (Compressed file ended before the "
        "end-of-stream marker was reached). Copy it again.",
    ),
    "a gzipped npz": ("a.npz.gz", b"x", "a.npz.gz: only CSV is read from gzip. Unzip it first."),
    "an Excel file": (
        "a.xlsx",
        b"PK",
        "a.xlsx has the unsupported suffix '.xlsx'. Save it as CSV in the program that made it.",
    ),
    "JSON": (
        "a.json",
        b"{}",
        "a.json has the unsupported suffix '.json'. Choose from .csv, .tsv, .parquet, .npz.",
    ),
    "text called npz": ("a.npz", b"hello", "a.npz is not an npz file. Write it with numpy.savez."),
    "an npz without X": (
        "a.npz",
        npz(sick=[0, 1]),
        "a.npz has no array 'X'. Store the features as X, one row a sample.",
    ),
    "an npz of one dimension": (
        "a.npz",
        npz(X=[1.0, 2.0], sick=[0, 1]),
        "a.npz has an array 'X' of shape (2,). Store the features as X, one row a sample.",
    ),
    "an npz with too few labels": (
        "a.npz",
        npz(X=np.eye(3), sick=[0, 1]),
        "a.npz: X has 3 rows, but sick has shape (2,).",
    ),
    "an npz with pickles": (
        "a.npz",
        npz(X=np.eye(2), sick=np.array([{}, {}], object)),
        "a.npz, array 'sick' cannot be read: Object arrays cannot be loaded when "
        "allow_pickle=False. Save plain arrays of numbers or strings with numpy.savez.",
    ),
    "an npz that claims 73 TiB": (
        "a.npz",
        liar(),
        "a.npz, array 'X' claims 80,000,000,000,000 bytes, but the file holds 208. Write it again "
        "with numpy.savez.",
    ),
    "names that do not fit": (
        "a.npz",
        npz(X=np.eye(2), sick=[0, 1], feature_names=["a"]),
        "a.npz: X has 2 columns, but feature_names has 1 different names.",
    ),
    "an empty Parquet": ("a.parquet", b"", "a.parquet is empty. Give a file with rows."),
}


def refused(run, tmp_path, *args, exit_code=1):
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    result = run(*args, exit_code=exit_code)
    assert result.stdout == ""
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    return result.stderr


@pytest.mark.parametrize("case", CSV)
def test_a_csv_file_is_refused_for(run, tmp_path, case):
    content, sentence = CSV[case]
    (tmp_path / "a.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    said = refused(run, tmp_path, "train", "a.csv", "--label", "sick")
    assert said == f"Error: {sentence}\n"


@pytest.mark.parametrize("case", OTHERS)
def test_a_file_is_refused_for(run, tmp_path, case):
    name, content, sentence = OTHERS[case]
    (tmp_path / name).write_bytes(content)
    assert refused(run, tmp_path, "train", name, "--label", "sick") == f"Error: {sentence}\n"


def test_a_damaged_parquet_is_refused(run, tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and then nothing")
    said = refused(run, tmp_path, "train", "a.parquet", "--label", "sick")
    assert said.startswith("Error: a.parquet cannot be read as Parquet: ")
    assert said.count("\n") == 1


def test_a_list_in_a_cell_is_refused(run, tmp_path):
    pd.DataFrame({"age": [[1, 2], [3]], "sick": [0, 1]}).to_parquet(tmp_path / "a.parquet")
    said = refused(run, tmp_path, "train", "a.parquet", "--label", "sick")
    assert said == (
        "Error: a.parquet, row 1: column 'age' has several values in one cell. Give one value a "
        "cell, or list the columns to use as features.\n"
    )


# What is wrong on the command line, and what is said about it.
ASKED = {
    "a kind for no column": (
        ["--kind", "agee=number"],
        "There is no feature 'agee' to declare as 'number'. Choose from age, dose, ward. Did you "
        "mean 'age'?",
    ),
    "weights that are words": (
        ["--weight", "ward"],
        "a.csv, line 2: column 'ward' has 'A', which is not a number. Name a column of weights.",
    ),
    "a folder that is not there": (
        ["--out", "no/model.json"],
        "There is no folder {here}/no for model.json. Make it first.",
    ),
    "a folder as the model": (["--out", "."], ". is a folder. Name a file in it."),
    "a feature that is the label": (
        ["--features", "age,sick"],
        "Column 'sick' is the label, so it cannot be a feature.",
    ),
}


@pytest.mark.parametrize("case", ASKED)
def test_a_command_is_refused_for(run, tmp_path, case):
    options, sentence = ASKED[case]
    (tmp_path / "a.csv").write_text(GOOD)
    said = refused(run, tmp_path, "train", "a.csv", "--label", "sick", *options)
    assert said == f"Error: {sentence.format(here=tmp_path)}\n"


def test_a_column_has_one_role(run, tmp_path):
    (tmp_path / "a.csv").write_text(GOOD)
    said = refused(run, tmp_path, "train", "a.csv", "--label", "sick", "--node", "sick",
                   exit_code=2)  # fmt: skip
    assert said.endswith("\nError: --node sick: this column is the label already.\n")


def test_a_folder_is_no_file(run, tmp_path):
    (tmp_path / "rows").mkdir()
    said = refused(run, tmp_path, "train", "rows", "--label", "sick")
    assert said == "Error: rows is a folder. Name the files in it.\n"


PAIRS = {
    "a column that one site lacks": (
        GOOD.replace("dose,", "", 1).replace(".5,0.5", ".5").replace(".5,1.5", ".5")
        .replace(".5,2.5", ".5").replace(".5,3.5", ".5"),
        "Node b has no column 'dose'; a has it as a number. Add it, or let it be filled in with "
        'missing_columns = "impute" (--missing-columns impute).',
    ),
    "a number here, words there": (
        GOOD.replace(",0.5,", ",low,").replace(",1.5,", ",mid,").replace(",2.5,", ",mid,")
        .replace(",3.5,", ",high,"),
        "Node b has 'dose' as categories (high, low, mid); a has it as a number. Write it alike, "
        "or declare its kind.",
    ),
    "labels of another spelling": (
        GOOD.replace(",0\n", ",no\n").replace(",1\n", ",yes\n"),
        "Node b has labels 'no', 'yes'; a has 0, 1. Write them alike.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PAIRS)
def test_two_sites_are_refused_for(run, tmp_path, case):
    content, sentence = PAIRS[case]
    (tmp_path / "a.csv").write_text(GOOD)
    (tmp_path / "b.csv").write_text(content)
    said = refused(run, tmp_path, "train", "a.csv", "b.csv", "--label", "sick")
    assert said == f"Error: {sentence}\n"


def test_another_unit_is_refused(run, tmp_path):
    (tmp_path / "a.csv").write_text(GOOD.replace("dose", "dose (mg)", 1))
    (tmp_path / "b.csv").write_text(GOOD.replace("dose", "dose (g)", 1))
    said = refused(run, tmp_path, "train", "a.csv", "b.csv", "--label", "sick")
    assert said == "Error: Node b has 'dose' in g; a has it in mg. Convert one of them.\n"


def test_money_of_another_country_is_refused(run, tmp_path):
    for name, sign in (("a", "$"), ("b", "€")):
        rows = "".join(f"{sign}{i}.50,{i % 2}\n" for i in range(12))
        (tmp_path / f"{name}.csv").write_text("price,sick\n" + rows)
    said = refused(run, tmp_path, "train", "a.csv", "b.csv", "--label", "sick")
    assert said == "Error: Node b has 'price' in €; a has it in $. Convert one of them.\n"


def test_measurements_are_no_labels(run, tmp_path):
    (tmp_path / "a.csv").write_text(GOOD)
    assert refused(run, tmp_path, "train", "a.csv", "--label", "age") == (
        "Error: a.csv: column 'age' has 12 different values, so it is no label. Name a column of "
        "classes with --label, or make classes of it first.\n"
    )


def test_an_input_is_never_written_over(run, tmp_path):
    (tmp_path / "a.csv").write_text(GOOD)
    (tmp_path / "link.csv").symlink_to("a.csv")
    for out in ("a.csv", "./a.csv", "link.csv"):
        assert refused(run, tmp_path, "train", "a.csv", "--label", "sick", "--out", out) == (
            f"Error: {out.removeprefix('./')} is one of the files to read. Write to another file.\n"
        )
    run("train", "a.csv", "--label", "sick")
    for out in ("a.csv", "model.json"):
        said = refused(run, tmp_path, "predict", "model.json", "a.csv", "--out", out)
        assert said == f"Error: {out} is one of the files to read. Write to another file.\n"


def test_a_pipe_or_a_link_is_written_to_not_replaced(run, tmp_path):
    (tmp_path / "a.csv").write_text(GOOD)
    (tmp_path / "deep").mkdir()
    (tmp_path / "model.json").symlink_to("deep/model.json")
    run("train", "a.csv", "--label", "sick")
    assert (tmp_path / "model.json").is_symlink()
    assert (tmp_path / "deep/model.json").is_file()
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    run("predict", "model.json", "a.csv", "--out", "pipe")
    said, _ = reader.communicate(timeout=300)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert said == run("predict", "model.json", "a.csv").stdout


def test_a_dash_is_stdout_for_answers_and_no_name_for_a_model(run, tmp_path):
    (tmp_path / "a.csv").write_text(GOOD)
    assert refused(run, tmp_path, "train", "a.csv", "--label", "sick", "--out", "-") == (
        "Error: - is no name of a file. Name the file to write.\n"
    )
    run("train", "a.csv", "--label", "sick")
    answers = run("predict", "model.json", "a.csv", "--out", "-").stdout
    assert answers == run("predict", "model.json", "a.csv").stdout != ""
    assert not (tmp_path / "-").exists()


def test_a_negative_weight_is_refused(run, tmp_path):
    (tmp_path / "a.csv").write_text(GOOD.replace(",0.5,", ",-2,", 1))
    said = refused(run, tmp_path, "train", "a.csv", "--label", "sick", "--weight", "dose")
    assert said == (
        "Error: a.csv, line 2: column 'dose' has -2. A row's weight is a number that is not "
        "negative.\n"
    )


def test_a_wrong_kind_is_wrong_usage(run, tmp_path):
    (tmp_path / "a.csv").write_text(GOOD)
    said = refused(
        run, tmp_path, "train", "a.csv", "--label", "sick", "--kind", "ward=text", exit_code=2
    )
    assert said.splitlines()[-1] == (
        "Error: --kind ward=text: write COLUMN=KIND, with a kind of number, yes/no, category, "
        "date, id."
    )


@pytest.mark.parametrize(
    ("heading", "new", "sentence"),
    [
        ("dose", "age,dose,ward\nold,1.5,A\n",
         "new.csv, line 2: column 'age' has 'old', which is not a number. Mend it."),
        ("dose (mg)", "age,dose (g),ward\n50,1.5,A\n",
         "new.csv has 'dose' in g; features are made of it in mg. Convert it."),
        ("dose", "dose\n1.5\n",
         "new.csv has no column 'age', which features are made of. Add it, or let it be filled in "
         'with missing_columns = "impute" (--missing-columns impute).'),
    ],
    ids=["a strange value", "another unit", "a missing column"],
)  # fmt: skip
def test_what_training_did_not_see_is_refused_at_prediction(run, tmp_path, heading, new, sentence):
    (tmp_path / "a.csv").write_text(GOOD.replace("dose", heading, 1))
    run("train", "a.csv", "--label", "sick")
    (tmp_path / "new.csv").write_text(new)
    assert refused(run, tmp_path, "predict", "model.json", "new.csv") == f"Error: {sentence}\n"


@pytest.mark.parametrize("command", ["live", "agent"])
def test_a_deeply_nested_plan_or_node_is_refused(run, tmp_path, command):
    (tmp_path / "plan.toml").write_text("a = " + "[" * 100_000)
    assert refused(run, tmp_path, command, "plan.toml") == (
        "Error: plan.toml is nested too deeply. Write lists and tables flat.\n"
    )


@pytest.mark.parametrize("command", ["status", "watch"])
def test_a_node_that_is_not_there_is_not_waited_for(run, tmp_path, command):
    assert refused(run, tmp_path, command, "nope/node.toml") == (
        "Error: There is no file nope/node.toml. Check the path.\n"
    )


def test_there_are_more_than_forty():
    assert len(CSV) + len(OTHERS) + len(PAIRS) + 8 >= 40
