import numpy as np
import pytest

from dtsvm.errors import DataError
from dtsvm.problem.settings import Settings
from dtsvm.rounds import matrix
from dtsvm.rounds.columns import Columns
from dtsvm.rounds.state import State
from dtsvm.runtime.memory import Memory


def two_agents() -> tuple[State, np.ndarray]:
    state = State(3, Settings(C=0.3))
    slots = state.add_agents([0, 1], [0, 0])
    state.link(slots[:1], slots[1:], True, True)
    return state, slots


def dealt(rng, n=40):
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, rng.integers(0, 2, n)


def test_rows_left_where_they_lie_train_to_the_same_bits_as_copied_ones(rng):
    X, y, owner = dealt(rng)
    adopted, slots = two_agents()
    adopted.adopt_rows(X, y, slots[owner])
    copied, slots = two_agents()
    for k in range(2):
        copied.add_rows(slots[k], X[owner == k], y[owner == k])
    for state in (adopted, copied):
        Memory(state).train(max_rounds=50, tol=None)
    assert adopted.tables.matrix.X is X
    assert np.array_equal(adopted.estimate(slots), copied.estimate(slots))


def test_rows_that_lie_apart_are_laid_side_by_side_and_train_to_the_same_bits(rng, monkeypatch):
    X, y, owner = dealt(rng)
    at = np.concatenate([np.arange(40), np.arange(0, 40, 3)])  # some rows are of both agents
    owner = np.concatenate([owner, 1 - owner[::3]])
    found = []
    for limit in (0, 1 << 20):
        monkeypatch.setattr(matrix, "CACHED_BYTES", limit)
        state, slots = two_agents()
        state.adopt_rows(X, y[at], slots[owner], None, at)
        Memory(state).train(max_rounds=50, tol=None)
        assert (state.tables.matrix.X is X) == (limit > 0)
        np.testing.assert_array_equal(state.tables.rows_of(int(slots[0]))[0], X[at[owner == 0]])
        found.append(state.estimate(slots))
    assert np.array_equal(*found)
    assert len(state.tables.matrix.X) == 40


def test_a_large_matrix_or_one_in_order_stays_where_it_lies(rng, monkeypatch):
    monkeypatch.setattr(matrix, "CACHED_BYTES", 0)
    X, y, _ = dealt(rng)
    owner = np.arange(40) % 2
    for limit, whose, is_copied in ((8, owner, False), (8000, owner, True),
                                    (8000, np.sort(owner), False)):  # fmt: skip
        monkeypatch.setattr(matrix, "COPIED_BYTES", limit)
        state, slots = two_agents()
        state.adopt_rows(X, y, slots[whose])
        assert (state.tables.matrix.X is not X) == is_copied
    monkeypatch.setattr(matrix, "COPIED_BYTES", 8)  # but a part of it is taken out
    state, slots = two_agents()
    state.adopt_rows(X, y[::4], slots[owner[::4]], None, np.arange(0, 40, 4))
    assert len(state.tables.matrix.X) == 10


def test_rows_left_where_they_lie_can_come_and_go(rng):
    X, y, owner = dealt(rng)
    more, signs = rng.normal(size=(4, 3)), np.array([1.0, -1.0, 1.0, -1.0])
    kept = X.copy()
    states = []
    for adopts in (True, False):
        state, slots = two_agents()
        if adopts:
            state.adopt_rows(X, y, slots[owner])
        else:
            for k in range(2):
                state.add_rows(slots[k], X[owner == k], y[owner == k])
        memory = Memory(state)
        memory.train(max_rounds=20, tol=None)
        state.drop_rows(slots[0], np.arange((owner == 0).sum()) < 5)
        memory.train(max_rounds=20, tol=None)
        state.add_rows(slots[0], more, signs)
        memory.train(max_rounds=20, tol=None)
        states.append(state.estimate(slots))
    assert np.array_equal(*states)
    assert np.array_equal(X, kept)


def test_a_row_takes_no_more_than_38_bytes_of_tables(rng):
    X, y, owner = dealt(rng, 1000)
    state, slots = two_agents()
    state.adopt_rows(X, y, slots[owner], np.ones(1000))
    plan, rows = state.plan, state.tables.rows
    listed = 4  # of rows that are awake, by compiled code alone
    total = sum(array.nbytes for array in rows.dump().values()) + plan.row_order.nbytes
    assert total == (38 - listed) * 1000
    assert all(mine.base is plan.row_order for mine in state.row_slots.values())


def test_weights_have_a_column_from_the_first_that_is_not_1(rng):
    X, y, owner = dealt(rng)
    weight = rng.choice([0.5, 1.0, 2.0], 40)
    adopted, slots = two_agents()
    adopted.adopt_rows(X, y, slots[owner], weight)
    later, slots = two_agents()
    order = np.argsort(owner, kind="stable")
    for k in range(2):
        mine = order[owner[order] == k]
        first, rest = mine[:1], mine[1:]
        later.add_rows(slots[k], X[first], y[first])
        assert "weight" not in later.tables.rows or k
        later.add_rows(slots[k], X[rest], y[rest], weight[rest])
        weight[first] = 1.0
    np.testing.assert_array_equal(later.tables.boxes(slots), 0.3 * weight[order])
    again, slots = two_agents()
    again.adopt_rows(X, y, slots[owner], weight)
    for state in (later, again):
        Memory(state).train(max_rounds=50, tol=None)
    assert np.array_equal(later.estimate(slots), again.estimate(slots))
    assert not np.array_equal(adopted.tables.boxes(slots), again.tables.boxes(slots))


def test_more_rows_than_can_be_numbered_are_refused():
    columns = Columns(np.int8, y=((), float))
    columns.take(100)
    with pytest.raises(DataError, match=r"^128 rows are more than one process can number, 127; "):
        columns.take(28)
