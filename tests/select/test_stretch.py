"""One number a candidate for its biases, from sums, against a minimiser that sees all rows."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dtsvm.errors import NetworkError
from dtsvm.select import Held, label_weights, stretching
from dtsvm.select.others import Others
from dtsvm.select.weighing import answered

pytestmark = pytest.mark.filterwarnings("ignore:Liblinear failed to converge")


def draw(seed, n_tasks=5, rows_a_task=24, n_candidates=4):
    """Decisions whose biases say the commoner label too often, or not often enough."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), rows_a_task)
    y = np.where(rng.uniform(size=len(task)) < 0.3, 1.0, -1.0)
    biases = rng.normal(-0.6, 0.3, (n_tasks, n_candidates))[task]
    seen = y[:, None] * rng.uniform(0.2, 1.0, n_candidates)
    noise = rng.normal(size=(len(task), n_candidates))
    decisions = (seen + noise + biases) * 10.0 ** rng.uniform(-1, 1, n_candidates)
    held = Held(np.zeros((len(y), 1)), y, task, np.arange(len(y)) % 3, n_tasks, 3)
    return held, decisions, biases * np.abs(decisions).mean(axis=0)


def everybody(held):
    return np.full(held.n_tasks, True)


def found(held, decisions, biases, votes=None):
    votes = everybody(held) if votes is None else votes
    return answered(stretching(held, decisions, biases, votes), np.asarray)


def raw(held, f, b, c):
    """argmin over a, δ of Σ c log(1 + exp(−y a (f + δ b))) + ½·1e-3 a² + 3/2 δ², |δ| ≤ 1."""
    scale = np.abs(f).mean()

    def loss(at):
        z = held.y * at[0] * (f + at[1] * b) / scale
        return (c * np.logaddexp(0.0, -z)).sum() + 0.5e-3 * at[0] ** 2 + 1.5 * at[1] ** 2

    ends = [(1e-3, None), (-1.0, 1.0)]
    return 1.0 + minimize(loss, [1.0, 0.0], bounds=ends, options={"ftol": 1e-14}).x[1]


@pytest.mark.parametrize("seed", range(8))
def test_six_steps_from_sums_are_at_the_minimum(seed):
    held, decisions, biases = draw(seed)
    counts = np.stack([np.bincount(held.task, held.y == side) for side in (-1, 1)], axis=1)
    c = label_weights(counts)[held.task, (held.y > 0).astype(int)]
    expected = [raw(held, f, b, c) for f, b in zip(decisions.T, biases.T, strict=True)]
    np.testing.assert_allclose(found(held, decisions, biases), expected, atol=2e-2)


def test_it_does_not_depend_on_the_units_of_decision_values():
    held, decisions, biases = draw(3)
    more = 2.0 ** np.arange(4)
    np.testing.assert_allclose(
        found(held, decisions * more, biases * more), found(held, decisions, biases), atol=1e-5
    )


def test_nodes_that_see_their_own_rows_and_totals_find_the_same_bits():
    held, decisions, biases = draw(1)
    node = np.random.default_rng(0).integers(3, size=len(held.y))

    def part(v):
        m = node == v
        mine = Held(held.X[m], held.y[m], held.task[m], held.fold[m], held.n_tasks, 3)
        return stretching(mine, decisions[m], biases[m], everybody(held))

    whole, steps = found(held, decisions, biases), [part(v) for v in range(3)]
    asked = [next(one) for one in steps]
    while True:
        total, ended = asked[0] + asked[1] + asked[2], []
        for k, one in enumerate(steps):
            try:
                asked[k] = one.send(total)
            except StopIteration as end:
                ended.append(end.value)
        if ended:
            break
    for one in ended:
        np.testing.assert_array_equal(one, whole)


def test_a_bias_keeps_its_sign_and_is_at_most_doubled_whatever_rows_say():
    held, decisions, _ = draw(2)
    right, one = held.y[:, None] * np.ones(4), np.ones_like(decisions)
    assert (found(held, right + 2.0, one) == 0.0).all()
    assert (found(held, right - 2.0, one) == 2.0).all()
    assert (found(held, decisions, np.zeros_like(decisions)) == 1.0).all()


def test_tasks_without_a_vote_have_no_say():
    held, decisions, biases = draw(4)
    votes = np.arange(held.n_tasks) != 2
    other = np.where((held.task == 2)[:, None], -decisions, decisions)
    scale = np.abs(other).mean(axis=0) / np.abs(decisions).mean(axis=0)
    np.testing.assert_array_equal(scale, 1.0)
    np.testing.assert_array_equal(
        found(held, decisions, biases, votes), found(held, other, biases, votes)
    )


def beside(*rows):
    return lambda own: own + np.array(rows)


LIES = {
    "information below zero": beside([-50.0, 0.0, 0.0], [0.0, -50.0, 0.0]),
    "information that is no Gram matrix": beside([1.0, 9.0, 0.0], [9.0, 1.0, 0.0]),
    "information that is not symmetric": beside([9.0, 1.0, 0.0], [2.0, 9.0, 0.0]),
    "nothing finite": beside([np.inf] * 3, [np.inf] * 3),
}


@pytest.mark.parametrize("lie", LIES)
def test_sums_that_no_rows_can_have_are_refused(lie):
    held, decisions, biases = draw(5)
    steps = stretching(held, decisions, biases, everybody(held))
    asked = next(steps)
    mine = steps.send(asked)
    others = Others()
    others.check(mine, 2.0 * mine)
    with pytest.raises(NetworkError, match="held-out gradients is none that honest nodes have"):
        others.check(mine, mine + LIES[lie](mine))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e9])
def test_a_lie_in_the_gradients_leaves_a_bias_between_nothing_and_its_double(size):
    held, decisions, biases = draw(5)
    rng = np.random.default_rng(0)

    def total(mine):
        forged = rng.normal(0.0, size, mine.shape[:2])
        return mine if mine.ndim == 1 else mine + np.stack(
            [np.zeros_like(forged), np.zeros_like(forged), forged], axis=2
        )  # fmt: skip

    stretch = answered(stretching(held, decisions, biases, everybody(held)), total)
    assert ((stretch >= 0.0) & (stretch <= 2.0)).all()


def test_the_answer_has_the_stretched_biases_of_candidates_with_company_and_no_others():
    from test_choose import draw as draw_tasks
    from test_choose import run

    X, y, task, _ = draw_tasks(6, noise=2.0)
    y[:18] = np.where(np.arange(18) < 5, 1.0, -1.0)
    chosen, heard = run(X, y, task), {}
    is_alone = np.array([one.family.is_alone for one in chosen.candidates])
    assert len(chosen.stretch) == len(chosen.candidates)
    assert (chosen.stretch[is_alone] == 1.0).all()
    assert ((chosen.stretch >= 0.0) & (chosen.stretch <= 2.0)).all()
    assert (chosen.stretch != 1.0).any()

    def hear(candidate, found):
        heard[candidate] = found[-1]

    again = run(X, y, task, hear=hear)
    share = again.found.weights * again.found.slopes
    expected = np.zeros_like(again.classifiers)
    for m in np.flatnonzero(share.any(axis=0)).tolist():
        trained = heard[again.candidates[m]].copy()
        trained[:, -1] *= again.stretch[m]
        expected += share[:, m, None] * trained
    np.testing.assert_allclose(again.classifiers, expected, atol=1e-9)


def test_with_a_guard_all_keep_their_biases():
    from test_choose import draw as draw_tasks
    from test_choose import run

    X, y, task, _ = draw_tasks(6, noise=2.0)
    assert (run(X, y, task, guard="alone").stretch == 1.0).all()
