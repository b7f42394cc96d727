"""Sums before the first round and of rows held out: bounded, noised, paid for once."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dtsvm.data import frame_records
from dtsvm.errors import NetworkError
from dtsvm.prepare import agreeing, encode
from dtsvm.prepare.agree import measure_counts, measure_spread, run_alone
from dtsvm.problem import Network, Privacy
from dtsvm.runtime.agent.node.agreed import Labelled
from dtsvm.runtime.agent.node.identity import Nameless
from dtsvm.runtime.agent.node.preparing import Preparing
from dtsvm.runtime.privacy.accounting import shared_multiplier, spent_epsilon
from dtsvm.runtime.privacy.budget import SUMS, Budget
from dtsvm.runtime.privacy.sums import COARSE, NoisySums
from dtsvm.runtime.privacy.veil import Noisy

pytest.importorskip("dp_accounting")
RANGES = {"age": (0.0, 120.0), "dose": (-3.0, 5.0), "ward": ("A", "B", "C")}
CHOSEN = Privacy("dp", 3.0, ranges=RANGES, preparation=0.1, evaluations=2)


def table(rng, n):
    age = rng.normal(60, 60, n)
    age[rng.random(n) < 0.2] = np.nan
    ward = rng.choice(["A", "B", "C", "D"], n).astype(object)
    return pd.DataFrame({"age": age, "dose": rng.normal(1, 4, n), "ward": ward})


def encoded(sums, frame):
    return sums.clipped(encode(frame_records(frame), sums.schema()))


def test_replacing_a_row_moves_a_sum_by_no_more_than_its_noise_is_made_for():
    sums, rng = NoisySums(Budget(CHOSEN)), np.random.default_rng(0)
    schema = sums.schema()
    most = [0.0, 0.0]
    for _ in range(200):
        frame = table(rng, 4)
        other = frame.copy()
        other.iloc[0] = table(rng, 1).iloc[0]
        rows, swapped = encoded(sums, frame), encoded(sums, other)
        means = rng.uniform(0, 1, 2) * sums._widths(schema) + sums._range(schema)[0] / [128.0, 8.0]
        for k, (measure, sizes) in enumerate((
            (measure_counts, sums._count_sizes(schema)),
            (lambda some, means=means: measure_spread(some, means), sums._spread_sizes(schema)),
        )):  # fmt: skip
            moved = measure(rows) - measure(swapped)
            assert not moved[sizes == 0].any()
            scaled = moved[sizes > 0] / sizes[sizes > 0]
            most[k] = max(most[k], float(np.linalg.norm(scaled)))
    assert max(most) <= 1.0 + 1e-9
    assert min(most) > 0.3  # the bound is not idle


def test_columns_that_a_neighbour_calls_something_else_are_refused():
    sums = NoisySums(Budget(CHOSEN))
    other = replace(CHOSEN, ranges={**RANGES, "ward": ("A", "B", "C", "D")})
    rows = encode(
        frame_records(table(np.random.default_rng(0), 5)), NoisySums(Budget(other)).schema()
    )
    with pytest.raises(NetworkError, match=r"other columns than those under \[privacy.ranges\]"):
        sums.clipped(rows)


def test_shares_of_a_budget_come_to_the_budget():
    chosen = replace(CHOSEN, probability=0.2)
    each = [
        (shared_multiplier(3.0, 1e-5, chosen.preparation, SUMS), SUMS),
        (shared_multiplier(3.0, 1e-5, chosen.probability, 1), 1),
        (Noisy(Budget(chosen)).multiplier, chosen.rounds),
    ]
    together = 1.0 / math.sqrt(sum(n / m**2 for m, n in each))
    assert 2.99 < spent_epsilon(together, 1e-5, 1) <= 3.0 + 1e-9


def test_nodes_agree_on_a_plan_near_that_of_the_pooled_rows_and_tell_it_again_after_a_restart(
    tmp_path,
):
    network = Network.line(["a", "b", "c"])
    rng, drawn = np.random.default_rng(1), np.random.default_rng(2)
    frames = {name: table(rng, 2000) for name in network.nodes}
    labels = {"t": Labelled((0, 1), {0: 900, 1: 1100})}

    def make(name):
        return Preparing(
            name, 7, tuple(network.neighbours(name)), [frame_records(frames[name])], Nameless(),
            incarnation=1, labels=labels, class_weight="balanced",
            noise=NoisySums(Budget(CHOSEN, tmp_path / f"{name}.json"), drawn.standard_normal),
        )  # fmt: skip

    for _ in range(2):  # the second time nothing is paid for
        nodes = {name: make(name) for name in network.nodes}
        for _ in range(40):
            for name, one in nodes.items():
                one.step()
                for other in network.neighbours(name):
                    nodes[other].hear(name, one.message(other))
        found = [one.agreed for one in nodes.values()]
        assert found[0] is not None, nodes["a"].trouble
        assert found[0] == found[1] == found[2]
        spent = [Budget(CHOSEN, tmp_path / f"{name}.json").counts for name in nodes]
        assert spent == [{"preparation": 3}] * 3
    pooled = encoded(nodes["a"].noise, pd.concat(frames.values()))
    exact = run_alone(agreeing(pooled), lambda vector: vector)
    assert found[0].plan.names == exact.names
    for noisy, true in zip(found[0].plan.features, exact.features, strict=True):
        assert noisy.mean == pytest.approx(true.mean, abs=2.0)
        assert noisy.scale == pytest.approx(true.scale, rel=0.2)
    assert sum(found[0].counts["t"]) == pytest.approx(6000, abs=100)
    said = nodes["b"]._known["a"].labels["t"]
    assert (said.given, said.counts) == ((0, 1), {})  # what its owner wrote, nothing that was found


def test_a_node_that_begins_too_many_sums_is_refused(tmp_path):
    for _ in range(SUMS):
        sums = NoisySums(Budget(CHOSEN, tmp_path / "budget.json"))
        with pytest.raises(ZeroDivisionError):
            sums.budget.tell("preparation", "x", SUMS, lambda: 1 / 0)
    with pytest.raises(NetworkError, match="The budget for preparation is spent"):
        sums.classes(np.ones(2))


def test_rows_held_out_are_counted_as_often_as_the_budget_says_and_then_the_same_again():
    sums = NoisySums(Budget(CHOSEN))
    exact = np.arange(256.0)
    told = [sums.evaluated("t", lambda: exact) for _ in range(4)]
    assert not np.array_equal(told[0], told[1])
    assert np.array_equal(told[1], told[2])
    assert np.array_equal(told[1], told[3])
    few = told[0].reshape(2 * COARSE, -1).sum(axis=1)
    np.testing.assert_allclose(few, exact.reshape(2 * COARSE, -1).sum(axis=1), atol=25)
