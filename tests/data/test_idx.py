"""IDX bytes and files: what is read, and what is refused with which sentence."""

import gzip

import numpy as np
import pytest

from dtsvm.data.idx import parse_idx, read_idx
from dtsvm.errors import DataError

LABELS = bytes([0, 0, 8, 1, 0, 0, 0, 3, 3, 6, 3])


def refusal(call, *arguments):
    with pytest.raises(DataError) as caught:
        call(*arguments)
    return str(caught.value)


def test_images_keep_their_axes(tmp_path):
    path = tmp_path / "images"
    path.write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, *range(6)]))
    assert read_idx(path, 3).tolist() == [[[0, 1, 2]], [[3, 4, 5]]]


def test_gzipped_and_plain_files_read_the_same(tmp_path):
    plain, packed = tmp_path / "labels", tmp_path / "labels.gz"
    plain.write_bytes(LABELS)
    packed.write_bytes(gzip.compress(LABELS))
    np.testing.assert_array_equal(read_idx(plain, 1), read_idx(packed, 1))


def test_a_wrong_magic_number_is_refused():
    assert refusal(parse_idx, LABELS + bytes(16), "t10k", 3) == (
        "t10k is not an IDX file of 3-D unsigned bytes: it starts with 00000801, not 00000803. "
        "Download it again."
    )


def test_a_truncated_file_is_refused():
    assert refusal(parse_idx, LABELS[:-1], "labels", 1) == (
        "labels is truncated: its header promises 3 bytes, but 2 follow. Download it again."
    )
    assert refusal(parse_idx, LABELS[:6], "labels", 1) == (
        "labels is truncated: it ends inside its header. Download it again."
    )


def test_a_header_that_promises_too_much_does_not_overflow():
    raw = bytes([0, 0, 8, 3]) + b"\xff" * 12
    assert refusal(parse_idx, raw, "images", 3) == (
        "images is truncated: its header promises 4294967295 x 4294967295 x 4294967295 bytes, "
        "but 0 follow. Download it again."
    )


def test_bytes_after_the_last_item_are_refused(tmp_path):
    path = tmp_path / "labels"
    path.write_bytes(LABELS + b"xy")
    assert refusal(read_idx, path, 1) == (
        f"{path} goes on for 2 bytes after its last item. Download it again."
    )


def test_a_damaged_gzip_file_is_refused(tmp_path):
    path = tmp_path / "labels.gz"
    path.write_bytes(gzip.compress(LABELS)[:-4])
    assert refusal(read_idx, path, 1) == (
        f"{path} cannot be unpacked: Compressed file ended before the end-of-stream marker was "
        "reached. Download it again."
    )


def test_an_absent_file_is_refused(tmp_path):
    path = tmp_path / "labels"
    assert refusal(read_idx, path, 1) == f"{path} cannot be read: No such file or directory."
