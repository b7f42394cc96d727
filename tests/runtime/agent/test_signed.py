"""Only its owner speaks for a node."""

import dataclasses
import datetime

import pytest

from dtsvm.errors import NetworkError
from dtsvm.problem import Settings
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.entry import Entry
from dtsvm.runtime.agent.node.identity import Nameless, Signer
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.roster import Roster
from dtsvm.runtime.agent.site.certificates import (
    make_authority,
    make_certificate,
    make_request,
    read_revoked,
    revoke,
    sign,
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    make_authority(folder, "ours")
    for name in "abcd":
        (folder / name).mkdir()
        make_certificate(folder, folder / name, name)
    return folder


def signer(site, name, **more):
    files = (site / name / file for file in ("ca.pem", "node.pem", "node.key"))
    return Signer(*(file.read_bytes() for file in files), **more)


def make(site, name, around, **more):
    node = Node(name, list(around), 4, Settings(), 7, 10, identity=signer(site, name), **more)
    node.enter("one", labels=(0, 1))
    return node


def with_entry(sender, entry, to="a"):
    """A message of `sender` with one more entry in its roster."""
    roster = Roster({**sender.roster.entries, entry.name: entry})
    message = wire.Message.FromString(sender.hello(0.0)[to])
    message.roster.CopyFrom(roster.to_wire())
    return message.SerializeToString()


def test_a_signed_entry_is_passed_on_and_believed(site):
    a, b, c = make(site, "a", "b"), make(site, "b", "ac"), make(site, "c", "b")
    assert b.take("c", c.hello(0.0)["b"], 0.0)
    assert a.take("b", b.hello(0.0)["a"], 0.0)
    assert a.roster.entries["c"] == c.roster.entries["c"]


@pytest.mark.parametrize("change", [{"has_left": True}, {"sequence": 99}, {"links": ()},
                                    {"tasks": ()}, {"round": 5}, {"told": 3},
                                    {"agreement": bytes(32)}])  # fmt: skip
def test_what_a_neighbour_says_of_another_node_is_refused_unless_that_node_signed_it(site, change):
    a, b, c = make(site, "a", "b"), make(site, "b", "ac"), make(site, "c", "b")
    true = c.roster.entries["c"]
    before = a.roster.digest
    assert not a.take("b", with_entry(b, dataclasses.replace(true, **change)), 0.0)
    assert a.roster.digest == before
    assert a.inbox.reasons["b"] == "node c did not sign what its roster says of it"


def test_nobody_can_sign_for_another(site):
    a, b = make(site, "a", "b"), make(site, "b", "a")
    forged = Entry("c", 99, 1, has_left=True, agreement=bytes(32))
    mine = forged.signed(7, b.identity)
    assert not a.take("b", with_entry(b, mine), 0.0)
    assert a.inbox.reasons["b"] == (
        "its roster has an entry of node c: its certificate is that of 'b'"
    )
    stranger = dataclasses.replace(forged, certificate=b"", signature=b"")
    assert not a.take("b", with_entry(b, stranger), 0.0)
    assert a.inbox.reasons["b"].endswith("its certificate is not of this network's authority")


def test_an_entry_of_another_network_is_not_believed(site):
    a, b, c = make(site, "a", "b"), make(site, "b", "a"), make(site, "c", "b")
    other = c.roster.entries["c"].signed(8, c.identity)
    assert not a.take("b", with_entry(b, other), 0.0)


def test_of_two_entries_of_one_age_all_keep_the_same(site):
    identity = signer(site, "c")
    two = [Entry("c", 5, 5, tasks=((task, 0, 0),)).signed(7, identity) for task in ("one", "two")]
    rosters = [Roster(), Roster()]
    rosters[0].merge(two)
    rosters[1].merge(two[::-1])
    assert rosters[0].digest == rosters[1].digest
    assert rosters[0].entries["c"] in two


def test_an_expired_or_revoked_certificate_speaks_no_more(site):
    certificate = signer(site, "c").certificate
    late = signer(site, "a", clock=lambda: datetime.datetime(2199, 1, 1, tzinfo=datetime.UTC))
    assert late.objection("c", certificate) == "its certificate has expired or is not valid yet"
    path = revoke(site, [site / "c" / "node.pem"])
    revoked = read_revoked(path, (site / "ca.pem").read_bytes())
    assert len(revoked) == 1
    strict = signer(site, "a", revoked=revoked)
    assert strict.objection("c", certificate) == "its certificate has been revoked"
    assert strict.objection("b", signer(site, "b").certificate) == ""


def test_a_node_whose_certificate_expires_is_forgotten_while_the_agent_runs(site):
    a, c = make(site, "a", "bc"), make(site, "c", "ab")
    assert a.take("c", c.hello(0.0)["a"], 0.0)
    a.drop_bad()
    assert set(a.roster.entries) == {"a", "c"}
    a.identity._clock = lambda: datetime.datetime(2199, 1, 1, tzinfo=datetime.UTC)
    a.drop_bad()
    assert set(a.roster.entries) == {"a"}
    a.take("c", c.hello(1.0)["a"], 1.0)  # its connection may still be open
    assert set(a.roster.entries) == {"a"}


@pytest.mark.parametrize("name", ["hospital-\u0430", "\uff41", "a\u200b", "a\n[tls]", 'a"', "A b"])
def test_a_name_that_only_looks_like_anothers_is_no_name(name, site, tmp_path):
    with pytest.raises(NetworkError, match="cannot be the name of a node"):
        make_certificate(site, tmp_path, name)
    entry = Entry(name, 1, 1, agreement=bytes(32))
    b = make(site, "b", "a")
    assert not make(site, "a", "b").take("b", with_entry(b, entry), 0.0)


def test_a_revoked_node_is_forgotten_while_the_agent_runs(site):
    a, b, c = make(site, "a", "bc"), make(site, "b", "ac"), make(site, "c", "ab")
    assert a.take("c", c.hello(0.0)["a"], 0.0)
    assert a.take("b", b.hello(0.0)["a"], 0.0)
    files = [(site / "a" / file).read_bytes() for file in ("ca.pem", "node.pem", "node.key")]
    revoked = read_revoked(revoke(site, [site / "c" / "node.pem"]), files[0])
    a.renew(*files, revoked)
    assert set(a.roster.entries) == {"a", "b"}
    assert a.roster.entries["a"].heard == {"b"}
    assert b.take("c", c.hello(0.0)["b"], 0.0)  # it has not heard of it
    assert a.take("b", b.hello(1.0)["a"], 1.0)  # and is not to blame
    assert "c" not in a.roster.entries


def test_who_comes_back_with_another_certificate_is_not_held_to_how_far_the_last_one_counted(
    site, tmp_path
):
    (site / "e").mkdir()
    make_certificate(site, site / "e", "e")
    a, liar = make(site, "a", "be"), make(site, "e", "ab")
    liar.presence.incarnation += 2**49
    liar.presence.announce(0.0, 0, is_news=True)
    assert a.take("e", liar.hello(0.0)["a"], 0.0)
    a.mail["e"].bar(0.0)
    files = [(site / "a" / file).read_bytes() for file in ("ca.pem", "node.pem", "node.key")]
    a.renew(*files, read_revoked(revoke(site, [site / "e" / "node.pem"]), files[0]))
    (tmp_path / "e").mkdir()
    make_certificate(site, tmp_path / "e", "e")
    mended = make(tmp_path, "e", "ab")
    assert a.take("e", mended.hello(1.0)["a"], 1.0), a.inbox.reasons
    assert a.roster.entries["e"].incarnation == mended.presence.incarnation
    assert a.roster.entries["a"].heard == {"e"}


def test_a_list_of_revoked_certificates_must_be_signed(site, tmp_path):
    make_authority(tmp_path, "theirs")
    path = revoke(tmp_path, [site / "c" / "node.pem"])
    with pytest.raises(NetworkError, match="was not signed by this network's authority"):
        read_revoked(path, (site / "ca.pem").read_bytes())


def test_a_request_is_signed_without_the_key(site, tmp_path):
    request = make_request(tmp_path, "e")
    key = (tmp_path / "node.key").read_bytes()
    assert (tmp_path / "node.key").stat().st_mode & 0o777 == 0o600
    assert sign(site, request, tmp_path / "node.pem") == "e"
    made = Signer((site / "ca.pem").read_bytes(), (tmp_path / "node.pem").read_bytes(), key)
    assert signer(site, "a").objection("e", made.certificate) == ""
    make_request(tmp_path, "e")  # again: the certificate is renewed for the same key
    assert (tmp_path / "node.key").read_bytes() == key
    (tmp_path / "bad.csr").write_bytes(request.read_bytes()[:200])
    with pytest.raises(NetworkError, match="is no signing request of"):
        sign(site, tmp_path / "bad.csr", tmp_path / "x.pem")


def test_a_key_and_a_certificate_must_belong_together(site):
    files = [(site / "a" / "ca.pem"), (site / "a" / "node.pem"), (site / "b" / "node.key")]
    with pytest.raises(NetworkError, match="does not belong to its certificate"):
        Signer(*(file.read_bytes() for file in files))


def test_names_that_differ_in_case_only_are_refused(site):
    a = make(site, "a", "bc")
    with pytest.raises(NetworkError, match="'B' differs from node 'b' in case only"):
        a.link("B")
    with pytest.raises(NetworkError, match="'A' differs from node 'a' in case only"):
        a.link("A")
    twin = Node("B", ["a"], 4, Settings(), 7, 10)
    plain = Node("a", ["b", "B"], 4, Settings(), 7, 10)
    b = Node("b", ["a"], 4, Settings(), 7, 10)
    assert plain.take("b", b.hello(0.0)["a"], 0.0)
    plain.take("B", twin.hello(0.0)["a"], 0.0)
    assert set(plain.roster.entries) == {"a", "b"}


def test_the_last_word_about_two_tasks_counts_and_goes_with_who_said_it():
    nodes = {name: Node(name, list("abc"), 4, Settings(), 7, 10) for name in "abc"}
    for node in nodes.values():
        node.mail.pop(node.name)
        for task in ("one", "three", "two"):
            node.enter(task)
        node.couple(["one", "two", "three"])

    def talk():
        for _ in range(3):
            for name, node in nodes.items():
                for other, data in node.hello(1.0).items():
                    if other in nodes:
                        assert nodes[other].take(name, data, 1.0)

    talk()
    together = [["one", "three", "two"]]
    assert all(node.groups() == together for node in nodes.values())
    nodes["b"].decouple("one")
    talk()
    assert all(node.groups() == [["one"], ["three", "two"]] for node in nodes.values())
    nodes["c"].couple(["one", "two"])
    talk()
    assert all(node.groups() == together for node in nodes.values())
    nodes["a"].take("c", nodes["c"].leave()["a"], 1.0)
    nodes.pop("c")
    talk()
    assert all(node.groups() == [["one"], ["three", "two"]] for node in nodes.values())


def test_settings_that_differ_are_named():
    one = Node("a", ["b"], 4, Settings(C=0.1, tol=1e-3), 7, 1)
    other = Node("b", ["a"], 4, Settings(C=0.2, tol=1e-3), 7, 1, personal=True)
    assert not one.take("b", other.hello(0.0)["a"], 0.0)
    assert one.inbox.reasons["b"] == (
        "the sender has other settings: C = 0.2 instead of 0.1, personal = True instead of False"
    )


def test_what_others_write_is_escaped_where_it_is_logged(caplog):
    a, b = (Node(name, ["a", "b"], 4, Settings(), 7, 1) for name in "ab")
    message = wire.Message.FromString(b.hello(0.0)["a"])
    message.sender = "b\n12:00:00  all is well \x1b[2J"
    assert not a.take("b", message.SerializeToString(), 0.0)
    assert "\n" not in caplog.messages[0]
    assert "\x1b" not in caplog.messages[0]
    assert r"b\n12:00:00  all is well \x1b[2J" in caplog.messages[0]


def test_two_halves_of_an_agreement_make_one_secret():
    one, other = Nameless(), Nameless()
    assert one.shared(other.agreement) == other.shared(one.agreement)
    assert one.shared(other.agreement) != one.shared(one.agreement)
