import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtsvm.problem import Certificate
from dtsvm.rounds.certify import Tally, certify
from reference import objective, solve_pooled


@given(st.integers(0, 10**6), st.integers(1, 3), st.floats(0.01, 5))
def test_any_classifier_and_any_prices_are_bracketed(seed, n_tasks, C):
    """Whatever w and λ are, the bound is below the optimum and the objective above."""
    rng = np.random.default_rng(seed)
    n, p = 20, 3
    X, task = rng.normal(size=(n, p)), rng.integers(0, n_tasks, n)
    y = np.where(rng.random(n) > 0.5, 1.0, -1.0)
    share = rng.dirichlet(np.ones(n_tasks))
    common, specific = rng.normal(size=p + 1), rng.normal(size=(n_tasks, p + 1))
    lam = C * rng.random(n) * (rng.random(n) > 0.3)
    Xt = np.column_stack([X, np.ones(n)])
    sides = [
        np.array([(lam * (y == s) * (task == t)) @ Xt for t in range(n_tasks)]) for s in (1, -1)
    ]
    inside = np.minimum(lam, C - lam)
    room = np.array([(inside * (task == t)) @ Xt for t in range(n_tasks)])
    slant = np.array([(inside * y)[task == t].sum() for t in range(n_tasks)])
    u = common + specific[task]
    hinge = np.maximum(0, 1 - y * (Xt * u).sum(axis=1))
    loss = np.array([C * hinge[task == t].sum() for t in range(n_tasks)])
    plus, minus = (side[:, -1] for side in sides)
    tally = Tally(loss, plus, minus, slant, sides[0] - sides[1], room, *sides)
    value = certify(tally, common, specific, share, (1.5, 0.5, 0.0))
    best = solve_pooled(X, y, task, share, C=C, common_reg=1.5, specific_reg=0.5).objective
    assert value.bound <= best + 1e-7
    assert value.objective >= best - 1e-7
    regs = {"C": C, "common_reg": 1.5, "specific_reg": 0.5}
    by_formula = objective(X, y, task, common, specific, share, **regs)
    np.testing.assert_allclose(value.objective, by_formula)


def test_the_gap_is_relative_to_the_bound():
    assert Certificate(3.0, 2.0).gap == 0.5
    assert Certificate(1.0, 0.0).gap == float("inf")
    assert Certificate(0.0, 0.0).gap == 0.0


def test_a_slip_on_the_margin_costs_the_bound_its_square():
    """Ten rows of each class on the margin and one of each far beyond, λ off by `slip`: w = 1."""
    C, reg = 0.25, (2.0, 2.0, 0.0)
    y = np.repeat([1.0, -1.0], 11)
    x = np.where(np.arange(22) % 11 == 10, -y, y)
    rows = np.column_stack([x, np.ones(22)])
    w = np.array([[0.5, 0.0]])

    def lost(slip):
        lam = np.where(x == y, 0.075 + slip * y, C)
        inside = np.minimum(lam, C - lam)
        plus, minus = ((lam * (y == s) @ rows)[None] for s in (1, -1))
        room, slant = (inside @ rows)[None], np.array([inside @ y])
        sides = plus[:, -1], minus[:, -1]
        tally = Tally(np.array([4.0 * C]), *sides, slant, plus - minus, room, plus, minus)
        return 1.5 - certify(tally, w[0], w, np.ones(1), reg).bound

    np.testing.assert_allclose(lost(0.0), 0.0, atol=1e-12)
    assert 0 < lost(1e-3) < 1e-3
    assert lost(1e-4) < 0.02 * lost(1e-3)
