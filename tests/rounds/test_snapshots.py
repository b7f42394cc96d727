from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtsvm import Network, Session
from dtsvm.kernel import compiled
from dtsvm.rounds.snapshots import Snapshots
from worlds import examples

CONSTANTS = compiled.constants()
STEPS, N_SHOWN = int(CONSTANTS["STEPS"]), int(CONSTANTS["N_SHOWN"])
CHECKS = [10 << k for k in range(16)]


def products(moves):
    """What a check shows of snapshots that moved like this: squares nobody looks at, then pairs."""
    pairs = (moves @ moves.T)[np.triu_indices(STEPS)]
    return np.concatenate([np.zeros(N_SHOWN), pairs])


@examples(30)
@given(st.integers(0, 10**6), st.integers(1, 2))
def test_a_leap_lands_at_the_limit_of_an_iteration_with_few_directions(seed, n_modes):
    """Snapshots of z ← z* + Σ cᵢ rᵢᵏ dᵢ."""
    rng = np.random.default_rng(seed)
    limit, *directions = rng.normal(size=(n_modes + 1, 64))
    rates = rng.uniform(0.5, 0.99, n_modes)
    z = np.array([
        limit + sum(r**k * d for r, d in zip(rates, directions, strict=True))
        for k in range(STEPS + 1)
    ])  # fmt: skip
    gamma = compiled.decide_leap(products(np.diff(z, axis=0)))
    assert np.linalg.norm(gamma @ z[1:] - limit) < 0.1 * np.linalg.norm(z[-1] - limit)


def test_the_mixture_sums_to_one_and_is_empty_where_nothing_moves(rng):
    moves = rng.normal(size=(STEPS, 20))
    gamma = compiled.decide_leap(products(moves))
    assert gamma.sum() == pytest.approx(1.0)
    assert np.linalg.norm(gamma @ moves) <= min(np.linalg.norm(move) for move in moves)
    assert len(compiled.decide_leap(np.zeros(N_SHOWN + STEPS * (STEPS + 1) // 2))) == 0


def test_the_mixture_is_that_of_a_solver_with_pivots(rng):
    moves = rng.normal(size=(STEPS, 20)) * 0.8 ** np.arange(STEPS)[:, None]
    gram = moves @ moves.T
    solved = np.linalg.solve(gram / np.trace(gram) + 1e-8 * np.eye(STEPS), np.ones(STEPS))
    gamma = compiled.decide_leap(products(moves))
    np.testing.assert_allclose(gamma, solved / solved.sum(), rtol=1e-9)


def exact_mixture(gram):
    """γ in fractions, nothing rounded until it is done."""
    G = [[Fraction(float(x)) for x in row] for row in gram]
    trace = sum(G[i][i] for i in range(STEPS))
    A = [[x / trace + (Fraction(1e-8) if i == j else 0) for j, x in enumerate(row)] + [Fraction(1)]
         for i, row in enumerate(G)]  # fmt: skip
    for k in range(STEPS):
        A[k] = [x / A[k][k] for x in A[k]]
        for i in [i for i in range(STEPS) if i != k]:
            A[i] = [x - A[i][k] * y for x, y in zip(A[i], A[k], strict=True)]
    whole = sum(row[-1] for row in A)
    return np.array([float(row[-1] / whole) for row in A])


def test_moves_nearly_alike_are_mixed_as_exactly_as_lapack_does_it(rng):
    off = []
    for scale in 10.0 ** rng.uniform(-6, 0, 40):
        moves = 0.9 ** np.arange(STEPS)[:, None] * (1 + scale * rng.normal(size=(STEPS, 40)))
        gram = moves @ moves.T
        solved = np.linalg.solve(gram / np.trace(gram) + 1e-8 * np.eye(STEPS), np.ones(STEPS))
        exact = exact_mixture(gram)
        both = compiled.decide_leap(products(moves)), solved / solved.sum()
        off.append([np.abs(gamma - exact).max() / np.abs(exact).max() for gamma in both])
    ours, lapack = np.median(off, axis=0)
    assert ours < 2 * lapack
    assert np.max(off) < 1e-7


@pytest.mark.parametrize("check", CHECKS[1:])
@pytest.mark.parametrize("is_warm", [False, True])
def test_snapshots_lie_between_the_last_check_and_the_next(check, is_warm):
    begin, step = compiled.snapshot_plan(check, is_warm)
    if begin == CONSTANTS["NEVER"]:
        assert check < 40
        assert not is_warm
        return
    assert begin > compiled.last_check(check - 1, is_warm)
    assert begin + STEPS * step == check


@pytest.mark.parametrize("is_warm", [False, True])
def test_no_snapshot_is_missed_by_who_asks_when_told_to(is_warm):
    due = [age for age in range(1, 3000) if compiled.snapshot_place(age, is_warm) >= 0]
    asked, age = [], 1
    while (age := compiled.next_snapshot(age, is_warm)) < 3000:
        asked.append(age)
        age += 1
    assert set(due) <= set(asked)
    assert len(asked) < len(due) + 20
    assert compiled.next_snapshot(CHECKS[-1] + 1, is_warm) > CONSTANTS["NEVER"]


def test_checks_come_at_ages_that_double_and_end():
    assert [compiled.next_check(age, False) for age in (0, 9, 10, 39)] == [10, 10, 20, 40]
    assert compiled.next_check(0, True) == 20
    assert [compiled.last_check(age, False) for age in (9, 10, 79, 80)] == [0, 10, 40, 80]
    assert compiled.next_check(CHECKS[-1], False) == CONSTANTS["NEVER"]


def test_leaps_save_rounds_and_lead_to_the_same_answer(rng, monkeypatch):
    def trained():
        live = Session(Network.ring(12), C=1.0)
        draws = np.random.default_rng(3)
        for node in range(12):
            X = draws.normal(size=(10, 5))
            live.enter(node, "a", X, np.sign(X[:, 0] + draws.normal(size=10)))
        live.run(tol=1e-6)
        return live

    leaping = trained()
    monkeypatch.setattr(Snapshots, "make_room", lambda *_: None)
    plain = trained()
    assert leaping.round < plain.round
    far = leaping.classifier("a").coef - plain.classifier("a").coef
    assert np.linalg.norm(far) < 1e-3 * np.linalg.norm(plain.classifier("a").coef)
