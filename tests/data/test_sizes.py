import numpy as np
import pytest

from dtsvm.data.sizes import LEAST, Sizes, count_exponents, largest_exponent, sizes_of


def by_sorting(numbers):
    some = np.sort(np.abs(numbers[np.isfinite(numbers) & (numbers != 0)]))
    if len(some) < 10:
        return None
    places = some[[len(some) // 10, len(some) // 2, len(some) - 1]]
    return Sizes(*np.frexp(places)[1].tolist())


@pytest.mark.parametrize("n", [0, 9, 10, 37, 20_000])
def test_sizes_from_counts_are_those_of_sorted_numbers(n):
    rng = np.random.default_rng(n)
    numbers = rng.normal(size=n) * 10.0 ** rng.integers(-310, 100, n)
    numbers[rng.random(n) < 0.1] = np.nan
    numbers[rng.random(n) < 0.1] = 0.0
    assert sizes_of(count_exponents(numbers)) == by_sorting(numbers)
    kept = numbers[~np.isnan(numbers)]
    assert largest_exponent(numbers) == np.frexp(np.abs(kept).max(initial=0.0))[1]


def test_counts_of_two_nodes_add_up_and_know_subnormal_numbers():
    numbers = np.array([5e-324, 2.0**-1022, 2.0**-1023, -1.0, np.inf, np.nan, -0.0])
    counts = count_exponents(numbers)
    found = {int(i) + LEAST: int(counts[i]) for i in np.flatnonzero(counts)}
    assert found == {-1073: 1, -1022: 1, -1021: 1, 1: 1}
    assert np.array_equal(counts + counts, count_exponents(np.tile(numbers, 2)))


def test_a_strided_column_of_whole_numbers_is_counted_too():
    numbers = np.arange(40).reshape(20, 2)[:, 1]
    assert np.array_equal(count_exponents(numbers), count_exponents(numbers.astype(float)))
