"""Sets side by side: each does what it would do by itself, until it is certified."""

import numpy as np
import pytest

from dtsvm import Network, Session
from dtsvm.runtime.apart import train_apart


def begin(rows, C=1.0, **settings):
    """A session of tasks that have nothing to do with each other, on a ring of four."""
    live = Session(Network.ring(4), C=C, **settings)
    for task, (X, y) in rows.items():
        for v in range(4):
            live.enter(node=v, task=task, X=X[v::4], y=y[v::4])
    return live


def draw(rng, names, n=40, p=3):
    found = {}
    for k, name in enumerate(names):
        X = rng.normal(size=(n, p))
        found[name] = X, np.where(X[:, 0] + (0.3 + k) * rng.normal(size=n) > 0, 1, -1)
    return found


def train(live, tol=1e-4, max_rounds=5000):
    members, memory = live._need_rows()
    ended = train_apart(memory, tol=tol, max_rounds=max_rounds)
    first = np.array([part[0] for part in members.state.plan.parts])
    return dict(zip(members.tasks_of(first), ended, strict=True))


def test_a_set_ends_as_it_would_by_itself(rng):
    rows = draw(rng, "abc")
    together = train(begin(rows))
    assert len({end.n_rounds for end in together.values()}) > 1  # some fall silent before others
    for name in rows:
        assert train(begin({name: rows[name]}))[name] == together[name]


def test_a_set_that_ended_is_certified_and_moves_no_more(rng):
    live = begin(draw(rng, "abc"))
    ended = train(live)
    assert all(end.is_certified and end.gap <= 1e-4 for end in ended.values())
    _, memory = live._need_rows()
    found = [one.objective for one in memory.certificates()]
    np.testing.assert_allclose(found, [end.objective for end in ended.values()], rtol=1e-12)


def test_what_has_ended_ends_again_without_a_round(rng):
    live = begin(draw(rng, "ab"))
    first, again = train(live), train(live)
    assert all(end.n_rounds > 0 for end in first.values())
    assert all(end.is_certified and end.n_rounds == 0 for end in again.values())


@pytest.mark.parametrize("most", [1, 7, 300])
def test_all_end_after_the_most_rounds(rng, most):
    ended = train(begin(draw(rng, "ab"), C=100.0), tol=1e-13, max_rounds=most)
    assert all(end.n_rounds == most and not end.is_certified for end in ended.values())
    assert all(end.messages_sent == most * 8 for end in ended.values())


def test_parts_that_are_the_same_numbers_stay_so(rng):
    live = begin(draw(rng, "ab"))
    assert all(end.is_certified for end in train(live).values())
    tables = live._need_rows()[0].state.tables
    for table, column in ((tables.agents, "estimate"), (tables.ends, "state")):
        both = table[column][table.used]
        assert both.any()
        assert (both[:, 0] == both[:, 1]).all()


def test_parts_that_differ_end_where_a_run_of_all_ends(rng):
    rows = draw(rng, "ab")
    apart, beside = (begin(rows, specific_reg=3.0) for _ in range(2))
    ended = train(apart, tol=1e-6)
    beside.run(tol=1e-6)
    _, memory = beside._need_rows()
    found = [one.objective for one in memory.certificates()]
    np.testing.assert_allclose([end.objective for end in ended.values()], found, rtol=1e-5)
