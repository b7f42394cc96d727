import pytest

from dtsvm.errors import ParameterError
from dtsvm.ui.page.scene import KEPT_ROUNDS, Records, Scene, plain


def test_what_is_not_finite_is_none():
    assert [plain(v) for v in (1.5, float("inf"), float("nan"))] == [1.5, None, None]


def test_records_come_once_each():
    records = Records(["round"])
    for i in range(5):
        records.add([i])
    first = records.since(0)
    assert (first["is_whole"], first["rows"], first["next"]) == (True, [[i] for i in range(5)], 5)
    records.add([5])
    later = records.since(first["next"])
    assert (later["is_whole"], later["rows"], later["next"]) == (False, [[5.0]], 6)
    assert records.since(6)["rows"] == []


def test_the_oldest_records_make_room_and_a_late_reader_starts_again():
    records = Records(["round"])
    for i in range(KEPT_ROUNDS + 1):
        records.add([i])
    assert len(records.rows) <= KEPT_ROUNDS
    again = records.since(3)
    assert again["is_whole"]
    assert again["rows"][0] == [records.dropped]
    assert again["next"] == KEPT_ROUNDS + 1


def test_an_unknown_action_is_refused_with_the_nearest_one():
    scene = Scene("nothing", ["round"], can_change=True)
    scene.actions = ("kill", "revive")
    with pytest.raises(ParameterError, match=r"Unknown action 'kil'.*Did you mean 'kill'"):
        scene.do("kil", {})
