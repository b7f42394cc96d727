"""A file that ends without a newline: most are whole, and those that are cut are found."""

import pytest

from dtsvm.data import read_rows
from dtsvm.data.cut import looks_cut
from dtsvm.errors import DataError

COLUMNS = {
    "labels": ["yes", "no"],
    "decimals": ["0.25", "13.50", "-2.75"],
    "decimal commas": ["0,25", "13,50"],
    "dates": ["2024-01-31", "2024-12-24"],
    "codes": ["AB-12", "CD-34"],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_every_beginning_of_a_value_is_found_where_values_are_written_alike(name):
    cells = COLUMNS[name] * 40
    for last in COLUMNS[name]:
        assert not looks_cut([*cells, last])
        beginnings = [last[:n] for n in range(len(last))]
        assert all(looks_cut([*cells, text]) for text in beginnings if text not in cells)


@pytest.mark.parametrize(
    ("others", "last"),
    [
        (["12", "25"], "1"),  # numbers may have fewer digits
        (["0.5", "0.25", "3"], "0.75"),
        (["0.5", "0.25", "3"], "1"),  # decimals that differ say nothing
        (["north", "south"], "west"),  # another word is no beginning
        (["2024-1-31", "2024-12-24"], "2024-1-3"),
        (["5", "", "6"], ""),  # gaps are known
        (["A12", "B3"], "C"),
    ],
)
def test_a_last_value_that_may_be_whole_is_left_alone(others, last):
    assert not looks_cut([*(others * 30), last])


def test_few_rows_say_nothing():
    assert not looks_cut(["yes", "no", "ye"])


def test_a_newline_at_the_end_settles_it(tmp_path):
    path = tmp_path / "rows.csv"
    text = "age,sick\n" + "41,yes\n42,no\n" * 30 + "43,ye"
    path.write_text(text + "\n")
    assert read_rows(path, label="sick").y.tolist()[-1] == "ye"
    path.write_text(text)
    with pytest.raises(DataError, match="line 62: the file ends inside this line, with 'ye'"):
        read_rows(path, label="sick")
