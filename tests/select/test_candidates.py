"""What is tried, how rows are held out, and what a person is told."""

import numpy as np
import pytest

from dtsvm.errors import ParameterError
from dtsvm.select import ALL, SMALL, Choice, Family, Rate, candidates, rate, read_families, split


def test_all_families_contain_the_small_set_and_the_task_alone_once():
    assert set(SMALL) < set(ALL)
    assert [family for family in ALL if family.is_alone] == [Family("task", 1.0)]


def test_families_may_be_named_or_listed():
    assert read_families("DTSVMCV", "small") == SMALL
    assert read_families("DTSVMCV", [("task", 1), ("common", 0.0, True)]) == (
        Family("task", 1.0), Family("common", 0.0, True),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("smal", "Unknown 'candidates' of DTSVMCV: 'smal'. Choose from all, small, alone. "
         "Did you mean 'small'?"),
        ([("common", 0.0)], "The 'candidates' of DTSVMCV must contain ('task', 1.0), a task alone: "
         "it tells which tasks to turn round and what company is worth."),
        ([("task", 1.5)], "A candidate's own share must be a number from 0 to 1. Got 1.5 in "
         "('task', 1.5)."),
        (3, "The 'candidates' parameter of DTSVMCV must be 'all', 'small', 'alone' or a list of "
         "(bias, own share, turned), bias one of task, common, mixed. Got 3 instead."),
    ],
)  # fmt: skip
def test_other_families_are_refused(given, sentence):
    with pytest.raises(ParameterError) as caught:
        read_families("DTSVMCV", given)
    assert str(caught.value) == sentence


def test_c_follows_the_length_of_rows_unless_given():
    some = candidates(SMALL, n_tasks=4, mean_square=10.0)
    assert [c.C for c in some[:4]] == pytest.approx([0.01, 0.1, 1.0, 10.0])
    assert [c.C for c in candidates(SMALL[:1], n_tasks=4, mean_square=10.0, C=[2, 1])] == [1.0, 2.0]


def test_a_price_that_is_not_positive_is_refused():
    with pytest.raises(ParameterError) as caught:
        candidates(SMALL, n_tasks=2, mean_square=1.0, C=[1.0, -1.0])
    assert str(caught.value) == (
        "The 'C' parameter of DTSVMCV must be positive floats. Got -1.0 instead."
    )


def test_folds_are_even_by_agent_and_label():
    rng = np.random.default_rng(0)
    y, agent = rng.choice([-1.0, 1.0], 200, p=[0.8, 0.2]), rng.integers(7, size=200)
    fold = split(y, agent, 3, seed=5)
    for a in range(7):
        for label in (-1.0, 1.0):
            counts = np.bincount(fold[(agent == a) & (y == label)], minlength=3)
            assert counts.max() - counts.min() <= 1


def test_folds_depend_on_the_seed_alone():
    y, agent = np.tile([1.0, -1.0], 30), np.repeat([0, 1], 30)
    assert (split(y, agent, 3, seed=1) == split(y, agent, 3, seed=1)).all()
    assert (split(y, agent, 3, seed=1) != split(y, agent, 3, seed=2)).any()


def make_choice(**changes):
    about = {
        "task": "3v6", "n_rows": 60, "weights": {}, "C": 0.1, "is_turned": True, "is_aside": False,
        "company": ("8v9",), "alone": Rate(0.1, 0.0, 0.3), "chosen": Rate(0.083, 0.0, 0.3),
        "difference": Rate(-0.017, -0.03, -0.004),
    }  # fmt: skip
    return Choice(**{**about, **changes})


def test_the_sentence_says_with_whom_on_which_side_and_what_it_is_worth():
    assert str(make_choice()) == (
        "3v6 trains with 8v9, turned round; 10.0 % alone, 8.3 % together."
    )
    assert str(make_choice(company=())) == "3v6 trains alone; 10.0 % alone."
    assert str(make_choice(n_labels=1)) == (
        "3v6 has 60 rows of one label only; how well it is told cannot be known."
    )
    many = tuple(range(22))
    assert str(make_choice(company=many, is_turned=False)) == (
        "3v6 trains with 22 other tasks; 10.0 % alone, 8.3 % together."
    )


def test_the_sentence_says_where_held_out_rows_cannot_tell_alone_from_together():
    close = make_choice(difference=Rate(0.017, -0.01, 0.04), n_rows=1200)
    assert str(close) == (
        "3v6 trains with 8v9, turned round; 10.0 % alone, 8.3 % together (1,200 rows cannot tell)."
    )
    worse = make_choice(difference=Rate(0.1, 0.02, 0.2))
    assert str(worse).endswith("together.")


def test_no_row_says_nothing_and_is_said():
    assert rate(0, 0)[1:] == (0.0, 1.0)
    assert "has no rows" in str(make_choice(n_rows=0))
