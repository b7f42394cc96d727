import sys

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from dtsvm.qp import borrowed, fetch


@njit
def total(arrays):
    (a, b), n = borrowed(arrays)
    out = np.zeros(a.shape[1])
    for i in range(n):
        fetch(a, i)
        fetch(b, i)
        out += a[i] * b[i]
    return out


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_borrowed_arrays_are_the_same_arrays_and_stay_with_their_owner(rng, dtype):
    a, b = rng.normal(size=(40, 3)).astype(dtype), rng.normal(size=40)
    owners = sys.getrefcount(a), sys.getrefcount(b)
    for _ in range(100):
        found = total(((a, b), 40))
    np.testing.assert_allclose(found, b @ a, rtol=1e-5)
    assert (sys.getrefcount(a), sys.getrefcount(b)) == owners


def test_fetching_beyond_the_end_harms_nobody():
    @njit
    def ahead(a):
        for i in range(len(a), len(a) + 1000):
            fetch(a, i)
        return a.sum()

    assert ahead(np.ones((5, 2))) == 10.0


def test_only_arrays_and_numbers_are_lent():
    @njit
    def lend(names):
        return len(borrowed(names))

    with pytest.raises(TypingError, match="Only arrays can be borrowed"):
        lend(("a", "b"))
