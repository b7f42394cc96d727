import pytest

from dtsvm import Network
from dtsvm.errors import NetworkError
from dtsvm.problem.reach import check_reach, place_relays

LINE = {v: list(Network.line(5).neighbours(v)) for v in range(5)}


def test_a_task_held_at_both_ends_is_refused_and_bridged():
    holders = {"a": [0, 1, 4]}
    with pytest.raises(NetworkError) as refused:
        check_reach(LINE, holders, [["a"]], False)
    assert str(refused.value) == (
        "Task 'a' is held by nodes that cannot hear each other: [0, 1] and [4]. "
        "Link them, or set relays='auto' to let the nodes between them pass messages on."
    )
    assert place_relays(LINE, holders, [["a"]], False) == [(2, "a"), (3, "a")]


def test_tasks_that_never_meet_are_refused_and_bridged():
    holders = {"a": [0, 1], "b": [3, 4]}
    with pytest.raises(NetworkError) as refused:
        check_reach(LINE, holders, [["a", "b"]], False)
    assert str(refused.value) == (
        "Tasks 'a' and 'b' train together, but no node holds both sides. Set relays='auto', or "
        "personal=True to link different tasks across the network, or train them apart with "
        "transfer=False."
    )
    assert place_relays(LINE, holders, [["a", "b"]], False) == [(2, "a"), (3, "a")]
    check_reach(LINE, holders, [["a"], ["b"]], False)


def test_personal_tasks_meet_across_a_link():
    check_reach(LINE, {"a": [0, 1], "b": [2, 3]}, [["a", "b"]], True)


@pytest.mark.parametrize("look", [check_reach, place_relays])
def test_a_network_in_two_parts_is_refused_by_name(look):
    apart = {0: [1], 1: [0], 2: []}
    with pytest.raises(NetworkError) as refused:
        look(apart, {"a": [0, 2]}, [], False)
    assert str(refused.value) == (
        "The network falls into parts that cannot hear each other: [0, 1] and [2]. "
        "Add a link between them."
    )
