import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtsvm.problem.settings import Settings
from dtsvm.rounds import matrix
from dtsvm.rounds.blocks import LINE, Blocks
from dtsvm.rounds.state import State
from dtsvm.runtime.memory import Memory


def mostly_zero(rng, n, p, dtype=np.float64, share=0.2):
    """Rows of which whole blocks of eight are zero, and some features of the others."""
    is_there = np.repeat(rng.random((n, -(-p // 8))) < share, 8, axis=1)[:, :p]
    return (rng.normal(size=(n, p)) * is_there * (rng.random((n, p)) < 0.7)).astype(dtype)


def trained(X, y, owner, more, is_laid):
    """Two linked agents after 40 rounds, 20 of them with rows that came and went."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "CACHED_BYTES", 0 if is_laid else 1 << 30)
        state = State(X.shape[1], Settings(C=0.3), X.dtype)
        slots = state.add_agents([0, 1], [0, 0])
        state.link(slots[:1], slots[1:], True, True)
        state.adopt_rows(X, y, slots[owner])
    assert isinstance(state.tables.matrix.X, Blocks) == is_laid
    assert not state.tables.matrix.is_sparse
    memory = Memory(state)
    memory.train(max_rounds=20, tol=None)
    np.testing.assert_array_equal(state.tables.rows_of(int(slots[1]))[0], X[owner == 1])
    np.testing.assert_array_equal(np.sort(state.tables.matrix.dump()["X"], axis=0), np.sort(X, 0))
    state.drop_rows(slots[0], np.arange((owner == 0).sum()) < 3)
    state.add_rows(slots[1], more, np.ones(len(more)))
    memory.train(max_rounds=20, tol=None)
    return state.estimate(slots), [one.gap for one in memory.certificates()]


@given(st.integers(0, 10**6), st.integers(1, 43), st.sampled_from([np.float64, np.float32]))
def test_rows_laid_as_blocks_train_to_the_same_bits_as_dense_ones(seed, p, dtype):
    rng = np.random.default_rng(seed)
    X = mostly_zero(rng, 30, p, dtype)
    X[:, : p // 2] = 0.0  # enough of it, however few there are
    if p < 16:
        X[5:] = 0.0
    y, owner = rng.choice([-1.0, 1.0], 30), np.arange(30) % 2
    more = rng.normal(size=(4, p)).astype(dtype)
    dense, laid = (trained(X, y, owner, more, is_laid) for is_laid in (False, True))
    assert dense[0].tobytes() == laid[0].tobytes()
    assert dense[1] == laid[1]


def test_blocks_of_a_row_are_copied_back_as_they_were(rng):
    X = mostly_zero(rng, 50, 21)
    at = rng.permutation(50)[:30]
    laid = Blocks.lay(X, at)
    np.testing.assert_array_equal(laid[:], X[at])
    np.testing.assert_array_equal(laid[np.array([3, 3, 0])], X[at][[3, 3, 0]])
    assert laid[np.zeros(0, np.int64)].shape == (0, 21)
    assert (len(laid), laid.dtype) == (30, X.dtype)


def test_no_block_of_eight_numbers_lies_across_two_lines_of_a_cache(rng):
    for dtype in (np.float64, np.float32):
        values = Blocks.lay(mostly_zero(rng, 50, 24, dtype), np.arange(50)).values
        assert values.ctypes.data % LINE == 0
        assert values.flags.c_contiguous


def test_rows_with_few_zeros_are_laid_as_they_are(rng):
    assert Blocks.lay(rng.normal(size=(50, 24)), np.arange(50)) is None
    late = np.zeros((4000, 24))  # those that are asked first do not tell
    late[1::4], late[2::4], late[3::4] = 1.0, 1.0, 1.0
    assert Blocks.lay(late, np.arange(4000)) is None
