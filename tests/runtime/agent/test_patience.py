from types import SimpleNamespace

import pytest
from meetings import Carrier, build, make_blocks

from dtsvm import Network
from dtsvm.runtime.agent.node.mail import Mail
from dtsvm.runtime.agent.node.timing import Timing
from dtsvm.runtime.agent.process.patience import LONGEST, MOST_CREDIT, Patience

SECONDS = 1.0


def waiting(**neighbours):
    """A node in round 5, and what it has heard."""
    timing = Timing(round_seconds=SECONDS, heartbeat_seconds=0.5)
    return SimpleNamespace(timing=timing, present=list(neighbours), mail=neighbours, round=5)


def lasts(patience, node, begun, talks):
    """How long a round lasts in which one neighbour never says what it should."""
    now = begun
    while not patience.is_over(begun, now):
        now += 0.05
        if talks:
            node.mail["b"].heard_at = now
    patience.earn(now - begun)
    return now - begun


def test_a_silent_neighbour_is_waited_for_as_long_as_a_round_lasts():
    node = waiting(b=Mail(newest=4, heard_at=-10.0))
    assert abs(lasts(Patience(node), node, 100.0, talks=False) - SECONDS) < 0.1


def test_a_neighbour_that_is_heard_but_behind_is_waited_for_longer():
    node = waiting(b=Mail(newest=4, heard_at=100.0))
    assert abs(lasts(Patience(node), node, 100.0, talks=True) - LONGEST * SECONDS) < 0.1


def test_settled_neighbours_are_waited_for_no_longer_than_a_sign_of_life():
    node = waiting(b=Mail(newest=4, heard_at=100.0, is_settled=True))
    patience = Patience(node)
    assert not patience.is_over(100.0, 100.4)
    assert patience.is_over(100.0, 100.5)


@pytest.mark.parametrize("quick", [0.0, 0.3, 0.9])
def test_who_withholds_its_words_slows_rounds_to_round_seconds_and_no_further(quick):
    """Whatever it does between: what makes rounds longer is what others were shorter."""
    node = waiting(b=Mail(newest=4, heard_at=100.0))
    patience, begun, n_rounds = Patience(node), 100.0, 0
    for n_between in [0] * 20 + [1, 2, 3] * 40:
        begun += lasts(patience, node, begun, talks=True)
        for _ in range(n_between):
            patience.earn(quick * SECONDS)
            begun += quick * SECONDS
        n_rounds += 1 + n_between
    slack = 0.05 * n_rounds  # of the clock above
    assert begun - 100.0 <= (n_rounds + MOST_CREDIT) * SECONDS + slack


def test_a_round_that_comes_after_the_next_is_used_in_its_turn():
    mail = Mail()
    for round_ in (4, 6, 5):
        news = SimpleNamespace(round=round_, squares=[0.0])
        mail.keep(news, 0.0, has_values=True)
        if round_ == 4:
            assert mail.take(4).round == 4
            assert mail.lacks(5)
        if round_ == 6:
            assert mail.lacks(5)
    assert not mail.lacks(5)
    assert mail.take(5).round == 5
    assert mail.take(6).round == 6
    assert mail.newest == 6


def test_who_went_on_from_farther_behind_says_that_there_is_nothing_to_wait_for():
    carrier = Carrier(build(Network.line(["a", "b"]), make_blocks(["a", "b"], ["one"])))
    carrier.meet()
    carrier.run_until_round(10)
    a, b = carrier.nodes.values()
    b.round = 12  # as after a neighbour that is ahead
    a.round = 11
    a.begin(carrier.now)
    carrier.deliver("b", b.begin(carrier.now))
    assert (a.round, b.round) == (12, 13)
    assert not a.is_complete()  # b may have said something in round 12
    carrier.deliver("b", b.outbox.earlier(["a"]))
    assert a.is_complete()
    a.finish(carrier.now)
    assert a.heard == ["b"]
