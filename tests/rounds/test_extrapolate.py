import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtsvm import Network, Session
from dtsvm.rounds.extrapolate import NOTHING, STEPS, Past, inner_products, leap, mixture, plan
from dtsvm.rounds.penalty import CHECKS, NEVER, last_check


def slowly(rng, n_modes, n_ends=8, p1=4):
    """Snapshots of z ← z* + Σ cᵢ rᵢᵏ dᵢ, a linear iteration with few slow directions."""
    limit, *directions = rng.normal(size=(n_modes + 1, n_ends, 2, p1))
    rates = rng.uniform(0.5, 0.99, n_modes)
    past = Past.empty(n_ends, 0, p1)
    for k in range(STEPS + 1):
        past.z[k] = limit + sum(r**k * d for r, d in zip(rates, directions, strict=True))
    return limit, past


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 2))
def test_a_leap_lands_at_the_limit_of_an_iteration_with_few_directions(seed, n_modes):
    limit, past = slowly(np.random.default_rng(seed), n_modes)
    ends = np.arange(len(limit))
    gamma = mixture(inner_products(ends, ends, past, np.full((8, 2), 2.0)).sum(axis=0))
    z = past.z[-1].copy()
    leap(gamma, np.zeros(0, np.int64), ends, past, np.zeros((0, 2, 4)), z)
    assert np.linalg.norm(z - limit) < 0.1 * np.linalg.norm(past.z[-1] - limit)


def test_the_mixture_sums_to_one_and_is_empty_where_nothing_moves(rng):
    moves = rng.normal(size=(STEPS, 20))
    gamma = mixture((moves @ moves.T)[np.triu_indices(STEPS)])
    assert gamma.sum() == pytest.approx(1.0)
    steepest = [np.linalg.norm(move) for move in moves]
    assert np.linalg.norm(gamma @ moves) <= min(steepest)
    assert len(mixture(np.zeros(STEPS * (STEPS + 1) // 2))) == 0


@pytest.mark.parametrize("check", CHECKS[1:])
@pytest.mark.parametrize("is_warm", [False, True])
def test_snapshots_lie_between_the_last_check_and_the_next(check, is_warm):
    begin, step = plan(check, is_warm)
    if begin == NEVER:
        assert check < 40
        assert not is_warm
        return
    assert begin > last_check(check - 1, is_warm)
    assert begin + STEPS * step == check


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
    monkeypatch.setattr("dtsvm.runtime.memory.snapshots", lambda state, n: NOTHING)
    plain = trained()
    assert leaping.round < plain.round
    far = leaping.classifier("a").coef - plain.classifier("a").coef
    assert np.linalg.norm(far) < 1e-3 * np.linalg.norm(plain.classifier("a").coef)
