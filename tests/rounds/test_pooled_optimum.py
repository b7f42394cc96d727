"""The one invariant: whatever the network, the answer is the pooled optimum."""

import numpy as np
import pytest
from hypothesis import given

from reference import solve_pooled
from worlds import examples, make_world, worlds


def suboptimality(world, info, tasks):
    chosen = {k: world.settings[k] for k in ("C", "common_reg", "specific_reg")}
    best = solve_pooled(*world.pooled_rows(tasks), **chosen).objective
    return (info.objective - best) / best


@examples(220)
@given(world=worlds())
def test_random_networks_end_at_the_pooled_optimum(world):
    live = world.session()
    info = live.run(tol=1e-6)
    off = suboptimality(world, info, list(live.tasks))
    assert info.status == "converged"
    assert off <= 1e-4
    assert info.gap >= off - 1e-8  # Clarabel's own accuracy


@examples(40)
@given(world=worlds(max_nodes=6))
def test_the_gap_covers_the_suboptimality_long_before_convergence(world):
    live = world.session()
    for _ in range(4):
        info = live.run(rounds=5)
        assert info.gap >= suboptimality(world, info, list(live.tasks)) - 1e-8


@pytest.mark.parametrize("loss", [0.2, 0.5])
def test_lost_messages_delay_but_do_not_change_the_answer(loss, rng):
    for _ in range(5):
        world = make_world(rng, 6, 2, 3, C=0.3, common_reg=1.0, specific_reg=1.0)
        live = world.session(loss=loss, seed=1)
        info = live.run(tol=1e-6)
        assert info.status == "converged"
        assert suboptimality(world, info, list(live.tasks)) <= 1e-4


def test_personal_tasks_meet_across_links(rng):
    world = make_world(rng, 5, 1, 3, C=0.3, common_reg=1.0, specific_reg=1.0)
    blocks = list(world.blocks.values())
    world.blocks = {
        (v, f"own {v}"): blocks[0] if v == 0 else _rows(rng) for v in world.network.nodes
    }
    live = world.session(personal=True, relays=None)
    info = live.run(tol=1e-6)
    assert suboptimality(world, info, list(live.tasks)) <= 1e-4


def _rows(rng):
    X = rng.normal(size=(6, 3))
    return X, np.where(np.arange(6) % 2, 1.0, -1.0)
