"""What readers of a released model can learn is bounded, the certified gap included."""

import numpy as np
import pytest

from dtsvm.errors import DataError
from dtsvm.problem import Privacy
from dtsvm.svm.release import optimum_sensitivity, release

pytest.importorskip("dp_accounting")


def nothing(n):
    return np.zeros(n)


def drawn(rng, n):
    X = rng.normal(size=(n, 2))
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0), rng.random(n) < 0.5


def parts(model, reg):
    """All of a model, in the norm in which it is strongly convex."""
    # w₀ and w_t have the biases beside them in proportion, so both are had from the whole.
    whole = [np.append(one.coef[0], one.intercept[0]) for one in model.tasks]
    common = sum(whole) * (1 / reg[0]) / (1 / reg[0] * len(whole) + 1 / reg[1])
    return np.concatenate(
        [np.sqrt(reg[0]) * common, *(np.sqrt(reg[1]) * (w - common) for w in whole)]
    )


def test_replacing_a_row_never_moves_the_optimum_more_than_the_bound():
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(60):
        X, y = drawn(rng, 12)
        y[:4] = [True, False, True, False]
        task = np.array([0, 0, 1, 1] * 3)
        C = float(10 ** rng.uniform(-2, 0.5))
        other_X, other_y = X.copy(), y.copy()
        (other_X[-1],), (other_y[-1],) = drawn(rng, 1)
        reg = (1.0, 0.5)
        found = [
            parts(release(*rows, task, Privacy("dp"), C=C, tol=1e-6, draw=nothing), reg)
            for rows in ((X, y), (other_X, other_y))
        ]
        bound = optimum_sensitivity(C, 1.0, reg, 1e-6 * C * len(y))
        worst = max(worst, np.linalg.norm(found[1] - found[0]) / bound)
    assert 0.2 < worst <= 1.0


def test_a_release_says_that_it_is_for_readers_only():
    X, y = drawn(np.random.default_rng(1), 40)
    model = release(X, y, np.zeros(40), Privacy("dp", epsilon=2.0), C=0.1)
    assert model.privacy["readers_only"]
    assert model.privacy["epsilon"] == 2.0
    info = model.info
    told = [info.objective, info.gap, info.primal_residual, info.dual_residual]
    assert np.isnan(told).all()  # they follow from the rows
    assert (info.n_rounds, info.seconds) == (1, 0.0)


def test_a_task_with_one_label_is_refused():
    with pytest.raises(DataError, match="Task 0 has 1 labels; a release needs two"):
        release(np.eye(2), [1, 1], [0, 0], Privacy("dp"))
