import numpy as np

from dtsvm.problem.settings import Settings
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
