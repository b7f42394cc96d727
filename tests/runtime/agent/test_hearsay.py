"""What neighbours pass on of others, and how far anybody can have counted."""

import dataclasses
import datetime

import pytest
from test_signed import make, signer, with_entry

from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.identity import AHEAD, Nameless
from dtsvm.runtime.agent.site.certificates import (
    make_authority,
    make_certificate,
    read_revoked,
    revoke,
)
from dtsvm.runtime.agent.site.checkpoint import dump, restore

FAR = 2**62 - 1


@pytest.fixture
def site(tmp_path):
    make_authority(tmp_path, "ours")
    for name in "abcd":
        (tmp_path / name).mkdir()
        make_certificate(tmp_path, tmp_path / name, name)
    return tmp_path


def talk(nodes, begin, seconds=1):
    """Have neighbours say hello every second; return when that ends."""
    by = {node.name: node for node in nodes}
    for now in range(begin, begin + seconds):
        for node in nodes:
            for name, data in node.hello(float(now)).items():
                if name in by:
                    by[name].take(node.name, data, float(now))
    return begin + seconds


def line(site):
    return make(site, "a", "b"), make(site, "b", "ac"), make(site, "c", "b")


def words(node, now):
    return node.inbox.hearsay.words(float(now))


# Whom only one of two believes


def renew(site, node, revoked):
    files = [(site / node.name / file).read_bytes() for file in ("ca.pem", "node.pem", "node.key")]
    node.renew(*files, read_revoked(revoked, files[0]))


def test_both_ends_say_who_is_not_believed_where_a_revocation_is_known_to_one_of_them(site):
    a, b, c = nodes = line(site)
    now = talk(nodes, 0, 5)
    assert a.roster.digest == b.roster.digest == c.roster.digest
    revoked = revoke(site, [site / "c" / "node.pem"])
    renew(site, a, revoked)
    now = talk(nodes, now, 10)
    assert not words(a, now)  # files are looked at every ten seconds: it may be copied just now
    now = talk(nodes, now, 20)
    assert words(a, now) == [
        "node b believes node c, and this node does not (its certificate has been revoked), so no "
        "sum over the network ends: copy revoked.pem to every folder."
    ]
    assert words(b, now) == [
        "node a does not believe node c, and this node does, so no sum over the network ends: copy "
        "revoked.pem to every folder, and set the clocks of all right."
    ]
    assert not words(c, now)
    renew(site, b, revoked)
    now = talk((a, b), now, 2)
    assert a.roster.digest == b.roster.digest
    assert not words(a, now)
    assert not words(b, now)


def test_a_clock_by_which_a_neighbours_neighbour_is_not_valid_is_named(site, monkeypatch):
    a, b, _ = nodes = line(site)
    why, good = "its certificate has expired or is not valid yet", a.identity.objection
    monkeypatch.setattr(
        a.identity, "objection", lambda name, one: why if name == "c" else good(name, one)
    )
    now = talk(nodes, 0, 40)
    assert words(a, now) == [
        f"node b believes node c, and this node does not ({why}), so no sum over the network ends: "
        "set the clocks of all right, or give it a new certificate."
    ]
    assert words(b, now)[0].startswith("node a does not believe node c, and this node does")


def test_many_who_are_not_believed_are_named_in_one_sentence(site):
    a, b, _ = line(site)
    now = talk((a, b), 0, 3)
    a.roster.drop("b")
    names = [f"n{i}" for i in range(9)]
    a.inbox.hearsay.note("b", {"a", "b", *names}, dict.fromkeys(names, "it is revoked"), now)
    a.inbox.hearsay.note("b", {"a", "b", *names}, dict.fromkeys(names, "it is revoked"), now + 30)
    assert words(a, now + 30)[0].startswith("node b believes nodes n0, n1, n2, n3, n4, and")


# How far anybody can have counted


def test_nobody_can_have_counted_further_than_the_clock(site):
    moment = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
    identity = signer(site, "a", clock=lambda: moment)
    assert identity.latest() == 946_684_800 * 10**6 + AHEAD
    assert Nameless().latest() < FAR


@pytest.mark.parametrize("change", [{"incarnation": FAR}, {"round": FAR}, {"told": FAR}])
def test_an_entry_that_has_counted_too_far_is_neither_kept_nor_passed_on(site, change):
    a, b, c = nodes = line(site)
    talk(nodes, 0, 3)
    old = a.roster.entries["c"]
    lie = dataclasses.replace(c.roster.entries["c"], sequence=99, **change).signed(7, c.identity)
    b.take("c", with_entry(c, lie, to="b"), 3.0)
    assert b.roster.entries["c"] == old
    assert a.take("b", with_entry(b, lie), 3.0)  # it may have come through another: b is believed
    assert a.roster.entries["c"] == old


@pytest.mark.parametrize("far", [lambda identity: FAR, lambda identity: identity.latest()])
def test_a_liars_site_comes_back_with_its_own_certificate_however_far_it_counted(site, far):
    a, b, c = nodes = line(site)
    now = talk(nodes, 0, 3)
    mine = c.roster.entries["c"]
    lie = dataclasses.replace(mine, incarnation=far(c.identity), sequence=FAR, told=far(c.identity))
    message = wire.Message.FromString(with_entry(c, lie.signed(7, c.identity), to="b"))
    b.take("c", message.SerializeToString(), float(now))
    message.incarnation = lie.incarnation
    b.take("c", message.SerializeToString(), float(now))
    message.ClearField("roster")
    b.take("c", message.SerializeToString(), float(now))
    talk((a, b), now, 2)
    cleaned = make(site, "c", "b")
    now = talk((a, b, cleaned), now + 2, 5)
    for node in (a, b, cleaned):
        assert node.roster.digest == cleaned.roster.digest
    assert b.roster.entries["b"].heard == {"a", "c"}
    assert a.roster.distances("a").keys() == set("abc")


def test_a_start_that_is_in_no_entry_does_not_keep_a_neighbour_out(site):
    b, c = make(site, "b", "c"), make(site, "c", "b")
    now = talk((b, c), 0, 3)
    message = wire.Message.FromString(c.hello(float(now))["b"])
    message.incarnation = c.identity.latest() - 1
    assert not b.take("c", message.SerializeToString(), float(now))
    assert b.inbox.reasons["c"] == "it began anew, and does not say so of itself"
    fresh = make(site, "b", "c")  # it knows of no entry yet
    message.ClearField("roster")
    assert fresh.take("c", message.SerializeToString(), float(now))
    cleaned = make(site, "c", "b")
    talk((fresh, cleaned), now, 3)
    assert fresh.roster.entries["b"].heard == {"c"}
    assert fresh.present == ["c"]


def test_changes_that_the_network_remembers_do_not_end_what_a_node_may_be_told(site):
    b, c = make(site, "b", "c"), make(site, "c", "b")
    kept = dump(c)
    now = talk((b, c), 0, 3)
    c.presence.told = c.identity.latest()
    c.tell_owner()
    b.take("c", c.hello(float(now))["b"], float(now))
    back = make(site, "c", "b")
    restore(back, kept)
    now = talk((b, back), now, 3)
    back.tell_owner()
    talk((b, back), now, 3)
    assert b.roster.entries["c"] == back.roster.entries["c"]


def test_however_far_a_liar_drives_one_nodes_rounds_its_other_neighbours_follow(site):
    a, b, c = nodes = line(site)
    talk(nodes, 0, 3)
    for step in range(5):
        message = wire.Message.FromString(c.hello(3.0)["b"])
        message.round = c.identity.latest() - 1000 + 10 * step
        assert b.take("c", message.SerializeToString(), 3.0)
        b.begin(3.0)
        b.finish(3.0)
    assert b.round > 2**40
    assert a.take("b", b.begin(3.0)["a"], 3.0)
    a.begin(3.0)
    assert a.round >= b.round
    message.round = c.identity.latest() + 10**9
    assert not b.take("c", message.SerializeToString(), 3.0)


# Two in league, one behind the other


def restless(c, n):
    """What c would say of itself for the n-th time."""
    old = c.roster.entries["c"]
    return dataclasses.replace(old, sequence=1000 + n, told=n).signed(7, c.identity)


def pass_on(a, b, c, moments):
    """Have b, in league with c, pass on what that says; return what a took over."""
    found = set()
    for step, moment in enumerate(moments):
        b.roster.put(restless(c, step))
        assert a.take("b", with_entry(b, b.roster.entries["c"]), moment)
        found.add(a.roster.entries["c"].sequence)
    return found


def test_who_hides_behind_another_changes_the_roster_little_more_often_than_a_neighbour_may(site):
    a, b, c = nodes = line(site)
    now = talk(nodes, 0, 3)
    moments = [now + step / 50 for step in range(1000)]
    assert len(pass_on(a, b, c, moments)) <= 200 + 20 + 2
    assert not a.mail["b"].n_barred
    assert words(a, moments[-1]) == [
        "node c, of which node b tells, says something new of itself too often: it is taken over "
        "once in a while, and nobody settles. Find out why, and revoke it."
    ]
    last = b.roster.entries["c"]
    assert a.take("b", with_entry(b, last), moments[-1] + 2.0)
    assert a.roster.entries["c"] == last
    assert not words(a, moments[-1] + 30.0)


def test_who_falls_silent_and_comes_back_for_ever_is_barred_and_not_its_neighbour(site):
    a, b, c = nodes = line(site)
    now = talk(nodes, 0, 3)
    for _ in range(400):
        now = talk((a, b), now, int(b.timing.evict_seconds) + 2)
        assert c.name not in b.present
        now = talk(nodes, now, 3)
        if b.mail["c"].n_barred:
            break
    assert b.inbox.reasons["c"].startswith("it comes and goes too often; it is barred for ")
    assert not a.mail["b"].n_barred


def test_what_neighbours_pass_on_of_a_neighbour_counts_when_it_speaks_itself(site):
    a, b, c = make(site, "a", "bc"), make(site, "b", "ac"), make(site, "c", "ab")
    now = talk((a, b, c), 0, 3)
    pass_on(a, b, c, [float(now)] * 150)
    a.take("c", with_entry(c, restless(c, 150)), float(now))
    assert a.inbox.reasons["c"] == (
        "it says something new of itself too often; it is barred for 896 s"
    )


def test_one_that_was_left_out_for_a_while_is_counted_when_it_is_back(site):
    b, c = make(site, "b", "c"), make(site, "c", "b")
    now = talk((b, c), 0, 3)
    for step in range(150):
        b.take("c", with_entry(c, restless(c, step), to="b"), float(now))
        b.roster.drop("c")  # as when all entries are too long for a message
    assert b.mail["c"].n_barred == 1


@pytest.mark.parametrize("is_at_rest", [True, False])
def test_what_is_said_while_all_are_at_rest_is_not_held_against_a_neighbour_for_long(
    site, is_at_rest
):
    b, c = make(site, "b", "c"), make(site, "c", "b")
    now = talk((b, c), 0, 3)
    for step in range(600):
        b.is_settled = is_at_rest
        b.take("c", with_entry(c, restless(c, step), to="b"), now + 20.0 * step)
    assert bool(b.mail["c"].n_barred) != is_at_rest


def test_who_is_barred_does_not_go_on_through_another_neighbour(site):
    a, b, c = make(site, "a", "bc"), make(site, "b", "ac"), make(site, "c", "ab")
    now = talk((a, b, c), 0, 3)
    a.mail["c"].bar(now)
    assert len(pass_on(a, b, c, [float(now)] * 500)) <= 201


def test_a_site_with_a_new_certificate_does_not_pay_for_a_thief_that_never_rested(site):
    b, c = make(site, "b", "c"), make(site, "c", "b")
    now = talk((b, c), 0, 3)
    for step in range(150):
        b.take("c", with_entry(c, restless(c, step), to="b"), float(now))
    assert b.mail["c"].n_barred
    revoked = revoke(site, [site / "c" / "node.pem"])
    (site / "c" / "node.key").unlink()
    make_certificate(site, site / "c", "c")
    renew(site, b, revoked)
    back = make(site, "c", "b")
    renew(site, back, revoked)
    now = talk((b, back), now, 3)
    for step in range(50):
        assert b.take("c", with_entry(back, restless(back, step), to="b"), float(now))
    assert b.present == ["c"]


# What was counted stays behind


def test_the_last_word_on_tasks_is_the_honest_owners_again_once_the_liar_is_gone(site):
    a, b, c = nodes = line(site)
    for node in nodes:
        node.enter("two")
    now = talk(nodes, 0, 3)
    c.presence.said = {("one", "two"): (c.identity.latest(), True)}
    c.presence.announce(now, 0, is_news=True)
    now = talk(nodes, now, 3)
    assert a.groups() == [["one", "two"]]
    b.couple(["one", "two"])  # after what the liar counted
    now = talk(nodes, now, 3)
    revoked = revoke(site, [site / "c" / "node.pem"])
    for node in (a, b):
        renew(site, node, revoked)
    now = talk((a, b), now, 3)
    a.decouple("one")
    talk((a, b), now, 3)
    assert a.groups() == b.groups() == [["one"], ["two"]]


def test_parts_of_all_sums_take_no_more_room_than_a_message_has(site):
    a, b = make(site, "a", "bc"), make(site, "b", "a")
    c = make(site, "c", "a")
    for node in (a, b, c):
        for i in range(6):
            node.enter(f"t{i}")
    now = talk((a, b, c), 0, 4)
    for node in (a, b, c):
        node.begin(float(now))
    waves = [name for name in a.sums.waves if "b" in a.sums.waves[name].tree.children]
    assert len(waves) >= 20
    most = a.inbox.most_bytes
    for name in waves:
        message = wire.Message.FromString(b.hello(float(now))["a"])
        message.sums.add(name=name, wanted=1, up=bytes(most // 4))
        a.take("b", message.SerializeToString(), float(now))
    held = [a.sums.waves[name].holds("b") for name in waves]
    assert most // 4 in held
    assert sum(held) <= most
