"""The bias that is least among the best."""

import numpy as np
import pytest

from dtsvm.select import best_bias


def hinge(scores, y, b):
    return np.maximum(0.0, 1.0 - y * (scores + b)).sum()


@pytest.mark.parametrize("seed", range(20))
def test_no_bias_has_a_smaller_loss_and_none_as_good_is_nearer_to_zero(seed):
    rng = np.random.default_rng(seed)
    group = rng.integers(4, size=30)
    scores, y = rng.normal(size=30), rng.choice([-1.0, 1.0], 30)
    found = best_bias(scores, y, group, 5)
    assert found[4] == 0.0
    for k in range(4):
        s, labels = scores[group == k], y[group == k]
        bends = labels - s
        best = min(hinge(s, labels, b) for b in bends)
        assert hinge(s, labels, found[k]) == pytest.approx(best, abs=1e-12)
        nearer = np.linspace(-abs(found[k]), abs(found[k]), 51)[1:-1]
        assert all(hinge(s, labels, b) > best - 1e-12 for b in nearer)
        if found[k] != 0.0:
            assert hinge(s, labels, 0.999 * found[k]) > best


@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_rows_of_one_class_need_a_bias_that_puts_them_right(label):
    scores = np.array([0.3, -0.4, 0.0])
    b = best_bias(scores, np.full(3, label), np.zeros(3, int), 1)[0]
    assert hinge(scores, label, b) == pytest.approx(0.0, abs=1e-12)
    assert hinge(scores, label, 0.99 * b) > 0.0
