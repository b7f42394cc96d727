"""Columns with their kinds: what is found in a file as hospitals write them."""

import gzip
import io
import sys
from datetime import timedelta

import numpy as np
import polars as pl
import pytest

from dtsvm.data import Kind, agree_schemas, frame_records, read_records
from dtsvm.data.columns import levels_of, numbers_of, switches_of, texts_of
from dtsvm.errors import DataError, ParameterError

MESSY = (
    "patient_id;age (years);dose [mg];smoker;ward;seen;flag;sick\n"
    "1001;71;1,5;yes;A;2024-01-05;0;1\n"
    "1002;;1.200,25;no;B;2024-02-05;1;0\n"
    "1003;64;NA;;A;2024-03-05;1;1\n"
)


@pytest.fixture
def write(tmp_path):
    def write_file(text, name="north.csv"):
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return write_file


def kinds(records):
    return {column.name: str(column.kind) for column in records.schema}


def test_every_column_keeps_its_name_kind_and_unit(write):
    rows = read_records(write(MESSY), roles={"label": "sick"})
    assert kinds(rows) == {
        "patient_id": "id", "age": "number", "dose": "number", "smoker": "yes/no",
        "ward": "category", "seen": "date", "flag": "0/1",
    }  # fmt: skip
    assert rows.schema["age"].unit == "years"
    assert rows.schema["ward"].levels == ("A", "B")
    assert rows.y.tolist() == [1, 0, 1]


def test_gaps_decimal_commas_and_yes_no_become_numbers(write):
    table = read_records(write(MESSY), roles={"label": "sick"}).table
    assert np.array_equal(numbers_of(table, "dose"), [1.5, 1200.25, np.nan], equal_nan=True)
    assert np.array_equal(numbers_of(table, "age"), [71, np.nan, 64], equal_nan=True)
    assert np.array_equal(switches_of(table, "smoker"), [1, 0, np.nan], equal_nan=True)
    assert levels_of(table, "ward").tolist() == ["A", "B", "A"]


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("utf-8-sig", "n.csv"), ("utf-16", "n.csv"), ("utf-16-le", "n.csv"), ("utf-32", "n.csv")],
)
def test_unicode_in_any_dress_is_read(write, encoding, name):
    text = "größe;sick\n1,5;0\n2,5;1\n"
    rows = read_records(write(text.encode(encoding), name), roles={"label": "sick"})
    assert kinds(rows) == {"größe": "number"}


def test_gzip_and_excels_first_line_are_read(write):
    text = "sep=;\na;sick\n1;0\n2;1\n"
    rows = read_records(write(gzip.compress(text.encode()), "n.csv.gz"), roles={"label": "sick"})
    assert numbers_of(rows.table, "a").tolist() == [1, 2]
    assert rows.table.place(0).endswith("line 3")


def test_standard_input_is_a_file(monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b"a,sick\n1,0\n"))
    monkeypatch.setattr("sys.stdin", stdin)
    assert read_records("-", roles={"label": "sick"}).n_rows == 1


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1.5", "NA", "-3e2"], Kind.NUMBER),
        (["0", "1", ""], Kind.ZERO_ONE),
        (["True", "false"], Kind.YES_NO),
        (["J", "N", "n"], Kind.YES_NO),
        (["A", "B", "A"], Kind.CATEGORY),
        (["007", "011", "007"], Kind.CATEGORY),
        (["3A", "4", "ICU", "4"], Kind.CATEGORY),
        (["24.12.2023", "1.1.2024"], Kind.DATE),
        (["", "n/a"], Kind.EMPTY),
        ([f"text {i}" for i in range(20)], Kind.ID),
        ([str(i) for i in range(5, 25)], Kind.ID),
        (["1,234.5", "17"], Kind.NUMBER),
        (["1 234", "17"], Kind.NUMBER),
        (["−1.5", "2.5"], Kind.NUMBER),
        (["12.5 mg", "7 mg", "NA"], Kind.NUMBER),
        (["36.6 °C", "38 °C"], Kind.NUMBER),
        (["12.5 mg", "7 g"], Kind.CATEGORY),
        (["12A", "7B"], Kind.CATEGORY),
    ],
)
def test_a_columns_kind_is_found_from_its_values(cells, kind):
    assert frame_records({"c": np.array(cells, object)}).schema["c"].kind is kind


def test_a_unit_beside_every_number_is_the_columns(write):
    rows = read_records(write("dose|sick\n12.5 mg|0\n−7 mg|1\n"), roles={"label": "sick"})
    assert rows.schema["dose"].unit == "mg"
    assert numbers_of(rows.table, "dose").tolist() == [12.5, -7.0]


def test_typed_columns_of_frames_have_kinds_too():
    pandas = pytest.importorskip("pandas")
    rows = frame_records(
        pandas.DataFrame(
            {
                "n": [1.5, None, 2.0],
                "b": [True, False, True],
                "m": pandas.array([True, None, False], dtype="boolean"),
                "d": pandas.to_datetime(["2024-01-01", "2024-01-02", None]),
                "c": pandas.Categorical(["u", None, "v"]),
            }
        )
    )
    assert kinds(rows) == {"n": "number", "b": "0/1", "m": "0/1", "d": "date", "c": "category"}


def test_durations_with_a_type_are_numbers_of_seconds():
    stay = np.array([90, "NaT", 7200], "timedelta64[s]").astype("timedelta64[ns]")
    objects = np.array([timedelta(seconds=90), None, timedelta(hours=2)], object)
    for cells in (stay, objects):
        rows = frame_records({"stay": cells})
        assert kinds(rows) == {"stay": "number"}
        assert numbers_of(rows.table, "stay").tolist() == pytest.approx(
            [90, np.nan, 7200], nan_ok=True
        )


@pytest.mark.parametrize("write_one", ["{0:02d}:{0:02d}:00", "{0} days 01:30:00", "PT{0}H30M",
                                       "{0}:30 pm", "20{0:02d}-05", "20{0:02d}Q3"])  # fmt: skip
def test_times_durations_and_months_are_no_identifiers_and_few_of_them_are_categories(write_one):
    cells = [write_one.format(i) for i in range(30)]
    assert kinds(frame_records({"stay": cells})) == {"stay": "date"}
    assert kinds(frame_records({"stay": cells[:3] * 10})) == {"stay": "category"}


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_long_whole_numbers_of_parquet_with_gaps_keep_their_last_digit(
    tmp_path, monkeypatch, library
):
    number = [None, *range(2**53 + 1, 2**53 + 40, 2)]
    day = [None, *range(20240101, 20240121)]
    sick = [b"no", b"yes "] * 10 + [b"no"]
    pl.DataFrame({"number": number, "day": day, "ward": sick, "sick": sick}).write_parquet(
        tmp_path / "rows.parquet"
    )
    if library == "polars":
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    rows = read_records(tmp_path / "rows.parquet", roles={"label": "sick"})
    assert kinds(rows) == {"number": "id", "day": "date", "ward": "yes/no"}
    assert texts_of(rows.table, "number") == ["", *map(str, number[1:])]
    assert rows.schema["ward"].levels == ("no", "yes")
    assert sorted(set(rows.y.tolist())) == ["no", "yes"]


def test_a_declared_kind_overrules_what_was_found(write):
    path = write("ward,id,sick\n1,1,0\n2,2,1\n3,3,1\n")
    rows = read_records(path, roles={"label": "sick"}, kinds={"ward": "category"})
    assert rows.schema["ward"].levels == ("1", "2", "3")
    with pytest.raises(ParameterError, match=r"Unknown kind 'text'. Choose from number, yes/no"):
        read_records(path, roles={"label": "sick"}, kinds={"ward": "text"})


REFUSED = {
    "1,234": (
        "dose;y\n1,234;0\n2,500;1\n",
        "n.csv, line 2: column 'dose' has '1,234', which may mean 1234 or 1.234. "
        "Write it without the comma, or with a point.",
    ),
    "1.234 beside decimal commas": (
        "dose;count;y\n1,5;1.234;0\n2,5;2.500;1\n",
        "n.csv, line 2: column 'count' has '1.234', which may mean thousands, as column 'dose' is "
        "written with commas. Write it without the point, or as a decimal comma.",
    ),
    "a word among numbers": (
        "dose;y\n1;0\n2;1\ntwo;1\n",
        "n.csv, line 4: column 'dose' has 'two', which is not a number. "
        "Mend it, or declare the column a category.",
    ),
    "a number out of measure": (
        "dose;y\n1e160;0\n2;1\n",
        "n.csv, line 2: column 'dose' has 1e+160, beyond ±1e+100. "
        "Use a larger unit or mend the value.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_line_and_column(write, case, monkeypatch, tmp_path):
    text, sentence = REFUSED[case]
    write(text, "n.csv")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as caught:
        read_records("n.csv", roles={"label": "y"})
    assert str(caught.value) == sentence


def schema_of(**columns):
    return frame_records({name: np.array(cells) for name, cells in columns.items()}).schema


def disagreement(**nodes):
    with pytest.raises(DataError) as caught:
        agree_schemas(nodes)
    return str(caught.value)


def test_nodes_agree_on_kinds_that_fit_all_and_on_every_level():
    north = schema_of(a=[0, 1], b=["yes", "no"], c=["A", "B"])
    south = schema_of(c=["C", "A"], b=[1, 0], a=[0.5, 2])
    agreed = agree_schemas({"north": north, "south": south})
    assert agreed.names == ("a", "b", "c")
    assert [str(column.kind) for column in agreed] == ["number", "yes/no", "category"]
    assert agreed["c"].levels == ("A", "B", "C")


def test_the_order_of_the_nodes_changes_only_the_order_of_the_columns():
    nodes = {
        "north": schema_of(a=[0, 1], b=["yes", "no"]),
        "south": schema_of(b=["yes", "maybe"], a=[3, 1]),
        "west": schema_of(a=[1, 1], b=["no", "no"]),
    }
    one = agree_schemas(nodes)
    other = agree_schemas(dict(reversed(nodes.items())))
    assert {c.name: c for c in one} == {c.name: c for c in other}


def test_a_missing_column_is_refused_by_name_or_filled():
    north, south = schema_of(age=[5, 6.5], creatinine=[1.5, 2]), schema_of(age=[7, 8.5])
    assert disagreement(north=north, south=south) == (
        "Node south has no column 'creatinine'; north has it as a number. Add it, or let it be "
        'filled in with missing_columns = "impute" (--missing-columns impute).'
    )
    agreed = agree_schemas({"south": south, "north": north}, missing_columns="impute")
    assert agreed.names == ("age", "creatinine")


def test_a_column_by_another_spelling_is_suspected():
    sentence = disagreement(north=schema_of(Creatinine=[1.5]), south=schema_of(creatinin=[2.5]))
    assert sentence == (
        "Node south has no column 'Creatinine'; north has it as a number. Is it the column "
        "'creatinin'? Then rename it."
    )


def test_another_kind_or_unit_is_refused_by_name():
    north, south = schema_of(dose=[1.5, 2]), schema_of(dose=["low", "high"])
    assert disagreement(north=north, south=south) == (
        "Node south has 'dose' as categories (high, low); north has it as a number. "
        "Write it alike, or declare its kind."
    )
    north = read_unit("creatinine (mg/dl)")
    south = read_unit("creatinine (µmol/l)")
    assert disagreement(north=north, south=south) == (
        "Node south has 'creatinine' in µmol/l; north has it in mg/dl. Convert one of them."
    )


def read_unit(header):
    return frame_records({header: [1.5, 2.5]}).schema


def test_a_column_is_found_by_its_whole_heading_too(write):
    rows = read_records(write(MESSY), roles={"label": "sick"}, features=["age (years)", "dose"])
    assert rows.schema.names == ("age", "dose")


def test_a_negative_or_missing_weight_is_refused(write):
    path = write("a,w,y\n1,1,0\n2,-1,1\n")
    with pytest.raises(DataError, match=r"line 3: column 'w' has -1. A row's weight is a number"):
        read_records(path, roles={"label": "y", "weight": "w"})


def test_percent_at_one_node_and_shares_of_one_at_another_do_not_join(write):
    north, south, east = (
        read_records(write(f"saturation,ward\n{cells}\n", f"{i}.csv")).schema
        for i, cells in enumerate(["97 %,A\n88%,B", "0.97,A\n1.0,B", "97,A\n88,B"])
    )
    assert agree_schemas({"north": north, "east": east})["saturation"].unit == "%"
    for nodes in ({"north": north, "south": south}, {"south": south, "east": east, "north": north}):
        with pytest.raises(DataError, match="Node north has 'saturation' in %; south has it with"):
            agree_schemas(nodes)


@pytest.mark.parametrize(
    ("here", "there", "heading"),
    [
        ([0.88, 0.99], [88.0, 99.0], "saturation"),
        ([0.0, 1.0], [0.0, 100.0], "share"),
        ([1.5, 2.0], [150.0, 200.0], "height"),
    ],
)
def test_a_column_a_hundred_times_as_large_at_one_node_does_not_join(write, here, there, heading):
    rng = np.random.default_rng(0)
    texts = [
        f"{heading}\n" + "\n".join(f"{x:.3f}" for x in rng.uniform(*ends, 40)) + "\n"
        for ends in (here, there)
    ]
    small, large = (read_records(write(text, f"{i}.csv")) for i, text in enumerate(texts))
    words = f"Node south has '{heading}' about (64|128) times as large as north: nearly all"
    with pytest.raises(DataError, match=words):
        agree_schemas({"north": small.schema, "south": large.schema})
    declared = read_records(small.table.path, kinds={heading: "number"}).schema
    joined = agree_schemas({"north": declared, "south": large.schema})
    assert joined[heading].exponent == large.schema[heading].exponent


def test_numbers_that_only_spread_more_at_one_node_join(write):
    rng = np.random.default_rng(0)
    texts = [
        "dose\n" + "\n".join(f"{x:.6f}" for x in size * rng.lognormal(0, 1.5, 40)) + "\n"
        for size in (1.0, 20.0)
    ]
    nodes = {f"{i}": read_records(write(text, f"{i}.csv")).schema for i, text in enumerate(texts)}
    assert agree_schemas(nodes)["dose"].kind == "number"


def test_units_in_headings_that_differ_do_not_join(write):
    one, other = (
        read_records(write(f"height [{unit}]\n1.8\n1.7\n", f"{unit}.csv")).schema
        for unit in ("cm", "m")
    )
    with pytest.raises(DataError, match=r"Node b has 'height' in m; a has it in cm\. Convert one"):
        agree_schemas({"a": one, "b": other})
