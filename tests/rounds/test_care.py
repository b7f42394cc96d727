"""Sweeps follow what agents see: who drifts apart with its problem unsolved solves it better."""

from __future__ import annotations

import numpy as np
import pytest

from dtsvm import Network, Session
from dtsvm.rounds.agreement import revise


def two_agents():
    rng = np.random.default_rng(0)
    live = Session(Network.line(2), C=0.1)
    for node in range(2):
        X = rng.normal(size=(30, 3))
        live.enter(node, "one", X, np.sign(X[:, 0] + 0.5 * rng.normal(size=30)))
    live.run(rounds=12)
    return live._members.state


def noted(state, *, apart: float, now: float, is_hasty: bool, age: int = 80) -> list[int]:
    """Care after a check that finds residuals `now` where the one before found `apart`."""
    agents, ends = state.tables.agents, state.tables.ends
    agents.open("apart")[:] = apart
    agents.open("is_hasty")[:] = is_hasty
    ends.open("residual")[:, :2, 0] = now / 2.0
    revise(state, age)
    np.testing.assert_allclose(agents["apart"][agents.used], now)
    return agents["care"][agents.used].tolist()


def test_agents_that_come_apart_with_their_problem_unsolved_sweep_more():
    state = two_agents()
    assert noted(state, apart=1.0, now=1.1, is_hasty=True) == [10, 10]
    assert noted(state, apart=1.0, now=1.1, is_hasty=True) == [100, 100]
    assert noted(state, apart=1.0, now=1.1, is_hasty=True) == [100, 100]


@pytest.mark.parametrize(
    ("apart", "now", "is_hasty"), [(1.0, 0.9, True), (1.0, 2.0, False), (0.0, 1.0, True)]
)
def test_who_comes_closer_or_has_solved_its_problem_or_has_no_past_sweeps_as_before(
    apart, now, is_hasty
):
    assert noted(two_agents(), apart=apart, now=now, is_hasty=is_hasty) == [1, 1]


def test_in_the_first_rounds_nobody_sweeps_more():
    assert noted(two_agents(), apart=1.0, now=1.1, is_hasty=True, age=40) == [1, 1]


def test_care_is_kept_in_a_session_that_is_saved(tmp_path):
    live = Session(Network.line(2), C=0.1)
    for node in range(2):
        live.enter(node, "one", np.eye(2), [-1, 1])
    live.run(rounds=3)
    live._members.state.tables.agents.open("care")[:] = 10
    live.save(tmp_path / "state.npz")
    again = Session.load(tmp_path / "state.npz")
    assert set(again._members.state.tables.agents["care"].tolist()) == {10}
