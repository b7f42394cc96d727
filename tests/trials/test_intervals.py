import numpy as np
import pytest

from dtsvm.trials.intervals import Claim, Finding, Interval, Verdict, interval, verdict


def test_the_interval_is_students():
    # Student's own sleep data: mean 1.58, 95 % from 0.70 to 2.46 (Cushny and Peebles, 1905).
    gained = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    mean, low, high, n = interval(gained)
    assert (round(mean, 2), round(low, 4), round(high, 4), n) == (1.58, 0.7001, 2.4599, 10)


def test_nineteen_of_twenty_intervals_hold_the_mean():
    rng = np.random.default_rng(0)
    intervals = [interval(rng.normal(3.0, 2.0, size=6)) for _ in range(4000)]
    share = np.mean([low < 3.0 < high for _, low, high, _ in intervals])
    assert share == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize("values", [[-5.0], [-5.0, -5.1], [-5.0, -5.1, -5.2, -5.3]])
def test_few_repeats_decide_nothing(values):
    assert verdict(interval(values)) is Verdict.UNDECIDED


@pytest.mark.parametrize("value", [-3.0, 0.0, 3.0])
def test_repeats_that_are_all_the_same_decide_nothing(value):
    assert verdict(interval([value] * 50)) is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-2.0, -0.1, Verdict.HOLDS),
        (-2.0, 0.0, Verdict.UNDECIDED),
        (-2.0, 1.0, Verdict.UNDECIDED),
        (-0.2, 0.1, Verdict.UNDECIDED),
        (-0.09, 0.1, Verdict.FAILS),
        (0.1, 2.0, Verdict.FAILS),
    ],
)
def test_a_difference_is_judged_by_its_whole_interval(low, high, expected):
    assert verdict(Interval((low + high) / 2, low, high, 9)) is expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(-2, -1), (-3, -1)], Verdict.HOLDS),
        ([(-2, -1), (-1, 1)], Verdict.UNDECIDED),
        ([(-2, -1), (-1, 1), (1, 2)], Verdict.FAILS),
    ],
)
def test_a_claim_is_as_strong_as_its_weakest_part(parts, expected):
    findings = tuple(Finding("d", Interval((a + b) / 2, a, b, 5)) for a, b in parts)
    assert Claim("fig0", "It is so.", "paper", findings).verdict is expected
