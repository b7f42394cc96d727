import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dtsvm.data.memory import LARGE_BYTES, give_back
from dtsvm.data.shares import Room, count_rows, read_blocks


def write(path, n=50_000):
    columns = {"x": np.arange(n, dtype=float), "node": np.arange(n) // 1000}
    pq.write_table(pa.table(columns), path, row_group_size=7000)
    return columns


def test_blocks_of_some_nodes_are_their_rows_in_order(tmp_path):
    columns = write(tmp_path / "rows.parquet")
    blocks = list(read_blocks(tmp_path / "rows.parquet", "node", [3, 41]))
    found = np.concatenate([block.columns["x"] for block in blocks])
    assert np.array_equal(found, columns["x"][np.isin(columns["node"], [3, 41])])


@pytest.mark.parametrize("suffix", ["parquet", "npz", "csv"])
def test_rows_are_counted_where_that_takes_no_reading(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    if suffix == "parquet":
        write(path, 123)
    elif suffix == "npz":
        np.savez(path, X=np.zeros((123, 2)), y=np.zeros(123))
    else:
        path.write_text("x,y\n1,2\n")
    assert count_rows(path) == (None if suffix == "csv" else 123)


def test_a_room_is_filled_block_by_block_and_refuses_what_does_not_fit():
    room = Room([3, 2])
    first, second = np.ones((3, 2)), np.full((2, 2), 2.0)
    placed = [room.put("X", block) for block in (first, second)]
    whole = room.filled("X")
    assert all(block.base is whole for block in placed)
    assert np.array_equal(whole, np.concatenate([first, second]))
    room.put("y", np.zeros(3, int))
    other = np.zeros(2)  # of another type
    assert room.put("y", other) is other
    assert room.filled("y") is None
    words = np.array(["a", "b"])
    assert room.put("node", words) is words
    assert Room([None]).put("X", first) is first


def test_what_was_freed_is_given_back(monkeypatch):
    called = []
    monkeypatch.setattr(pa, "default_memory_pool", lambda: called.append("looked") or Pool)
    give_back(LARGE_BYTES - 1)
    assert not called
    give_back(LARGE_BYTES)
    assert called == ["looked"]


class Pool:
    @staticmethod
    def release_unused():
        pass
