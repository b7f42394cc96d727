import asyncio
import contextlib
import dataclasses
import math

import pytest
from meetings import make_blocks, make_node

from dtsvm.errors import NetworkError
from dtsvm.runtime.agent.process.credentials import Credentials
from dtsvm.runtime.agent.process.transport import Transport
from dtsvm.runtime.agent.site.certificates import (
    make_authority,
    make_certificate,
    read_revoked,
    revoke,
)


def certified(folder, name):
    home = folder / name
    home.mkdir()
    make_certificate(folder, home, name)
    files = ("ca.pem", "node.pem", "node.key")
    return Credentials(*((home / file).read_bytes() for file in files))


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """The certificates of nodes a, b, c and d of one network, and of an impostor's."""
    folder, other = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("other")
    make_authority(folder, "ours")
    make_authority(other, "theirs")
    found = {name: certified(folder, name) for name in "abcd"}
    found["wrong"] = certified(other, "a")
    # An impostor trusts our CA, but has a certificate of another.
    found["impostor"] = Credentials(found["b"].ca, found["wrong"].certificate, found["wrong"].key)
    return found


@contextlib.asynccontextmanager
async def listening(credentials, on_message=lambda peer, data: None, neighbours=("a", "c")):
    around = dict.fromkeys(neighbours, "127.0.0.1:1")
    server = Transport("b", "127.0.0.1:0", around, credentials, on_message)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def until(is_so):
    """Look again and again; only a failure takes five minutes."""
    async with asyncio.timeout(300):
        while not is_so():
            await asyncio.sleep(0.01)


async def knock(name, credentials, server, is_over, data=b"hello", neighbour="b"):
    """Dial a node again and again and say something, until something is so."""
    address = {neighbour: f"127.0.0.1:{server.port}"}
    client = Transport(name, "127.0.0.1:0", address, credentials, lambda peer, data: None)
    await client.start()
    client.send(neighbour, data)
    await until(is_over)
    await client.stop()


def heard_from(name, credentials, server_credentials):
    """What a node hears of who dials it, until it has heard something or refused it twice."""

    async def meet():
        heard = []
        async with listening(server_credentials, lambda *got: heard.append(got)) as server:
            await knock(name, credentials, server, lambda: heard or server.refused >= 2)
        return heard

    return asyncio.run(meet())


def test_a_neighbour_with_its_certificate_is_heard(network):
    assert ("a", b"hello") in heard_from("a", network["a"], network["b"])


@pytest.mark.parametrize("who", ["wrong", "impostor"])
def test_a_certificate_of_another_authority_is_refused(network, who):
    assert heard_from("a", network[who], network["b"]) == []


def test_no_certificate_is_refused(network):
    assert heard_from("a", None, network["b"]) == []


def test_a_node_of_the_network_that_is_no_neighbour_is_refused(network):
    # It dials b as if it were a: its certificate says d.
    assert heard_from("a", network["d"], network["b"]) == []


def test_a_server_with_another_name_than_the_neighbours_is_refused(network, caplog):
    heard = []

    async def meet():
        async with listening(network["b"], lambda *got: heard.append(got)) as server:
            said = "Node a cannot reach node c: "
            await knock("a", network["a"], server, lambda: said in caplog.text, neighbour="c")

    with caplog.at_level("INFO"):
        asyncio.run(meet())
    assert heard == []


def test_a_neighbours_certificate_cannot_speak_for_another_node(network):
    blocks = make_blocks(["a", "b", "c"], ["one"])
    ours = make_node("c", ["a", "b"], blocks)
    message = make_node("a", ["c"], blocks).hello(0.0)["c"]

    async def meet():
        around = {"a": "127.0.0.1:1", "b": "127.0.0.1:1"}
        server = Transport(
            "c", "127.0.0.1:0", around, network["c"], lambda *got: ours.take(*got, 0.0)
        )
        await server.start()
        await knock("b", network["b"], server, lambda: ours.refused["b"], message, "c")
        await server.stop()

    asyncio.run(meet())
    assert ours.refused["b"] >= 1
    assert ours.mail["a"].heard_at is None
    assert ours.mail["b"].heard_at is None


def test_without_certificates_only_loopback():
    with pytest.raises(NetworkError, match=r"talks on loopback only, not to 10\.0\.0\.1:5"):
        Transport("a", "127.0.0.1:0", {"b": "10.0.0.1:5"}, None, print)


def test_a_slow_line_keeps_the_two_newest_messages():
    async def fill():
        line = Transport("a", "127.0.0.1:0", {"b": "127.0.0.1:1"}, None, print)
        for k in range(100):
            line.send("b", bytes([k]))
        return list(line._lines["b"].waiting)

    assert asyncio.run(fill()) == [bytes([98]), bytes([99])]


def test_a_lost_stream_is_dialled_anew_and_begins_with_the_last_words(network):
    async def meet():
        heard = []
        async with listening(network["b"], lambda *got: heard.append(got)) as first:
            port = first.port
            client = Transport(
                "a", "127.0.0.1:0", {"b": f"127.0.0.1:{port}"}, network["a"], lambda *_: None
            )
            await client.start()
            client.send("b", b"last words")
            await until(lambda: heard)
        heard.clear()
        second = Transport(
            "b", f"127.0.0.1:{port}", {"a": "127.0.0.1:1"}, network["b"],
            lambda *got: heard.append(got),
        )  # fmt: skip
        await second.start()
        await until(lambda: heard)
        await client.stop()
        await second.stop()
        return heard

    assert asyncio.run(meet())[0] == ("a", b"last words")


async def connected(name, credentials, server, **more):
    """A neighbour that has dialled."""
    address = {"b": f"127.0.0.1:{server.port}"}
    client = Transport(name, "127.0.0.1:0", address, credentials, lambda *_: None, **more)
    await client.start()
    client.send("b", b"hello")
    return client


def test_who_connects_again_and_again_does_not_cut_off_the_connection_that_is_heard(network):
    async def meet():
        heard = []
        async with listening(network["b"], lambda *got: heard.append(got)) as server:
            client = await connected("a", network["a"], server)
            await until(lambda: heard)
            line = server._lines["a"]
            first = line.stream
            line.heard_at = math.inf  # it never falls silent
            again = await connected("a", network["a"], server)
            await until(lambda: server.refused >= 3)
            client.send("b", b"more")
            await until(lambda: ("a", b"more") in heard)
            kept = line.stream is first and first.is_open
            line.heard_at = -math.inf  # its line was cut
            await until(lambda: line.stream not in (None, first))
            for one in (client, again):
                await one.stop()
        return kept, first.why, heard

    kept, why, heard = asyncio.run(meet())
    assert kept
    assert why == "there is a newer connection"
    assert set(heard) == {("a", b"hello"), ("a", b"more")}


def test_a_thief_of_a_key_that_keeps_talking_gives_way_once_its_certificate_is_revoked(tmp_path):
    make_authority(tmp_path, "ours")
    stolen, ours = certified(tmp_path, "a"), certified(tmp_path, "b")
    (tmp_path / "a").rename(tmp_path / "stolen")
    fresh = certified(tmp_path, "a")
    revoked = read_revoked(revoke(tmp_path, [tmp_path / "stolen" / "node.pem"]), ours.ca)

    async def meet():
        heard = []
        async with listening(ours, lambda *got: heard.append(got[1])) as server:
            thief = await connected("a", stolen, server)
            await until(lambda: heard)
            line = server._lines["a"]
            line.heard_at = math.inf  # it talks all the time
            true = await connected("a", fresh, server)
            true.send("b", b"it is me")
            await until(lambda: server.refused >= 2)
            assert b"it is me" not in heard
            taken = line.stream
            server.renew(dataclasses.replace(ours, revoked=revoked))
            await until(lambda: b"it is me" in heard)
            heard.clear()
            thief.send("b", b"it is not")
            true.send("b", b"more")
            await until(lambda: b"more" in heard)
            for one in (thief, true):
                await one.stop()
        return heard, taken.why

    heard, why = asyncio.run(meet())
    assert b"it is not" not in heard
    assert why == "its certificate is good no more"


def test_a_neighbour_whose_connection_has_ended_is_let_in_at_once(network):
    async def meet():
        heard = []
        async with listening(network["b"], lambda *got: heard.append(got)) as server:
            for _ in range(3):
                client = await connected("a", network["a"], server)
                n = len(heard)
                await until(lambda n=n: len(heard) > n)
                await client.stop()
                await until(lambda: server._lines["a"].stream is None)
            return server.refused

    assert asyncio.run(meet()) == 0


def test_a_neighbour_that_ends_every_connection_in_other_words_fills_no_log(caplog):
    caplog.set_level("INFO", "dtsvm")

    async def meet():
        n = 0

        async def end(reader, writer):
            nonlocal n
            n += 1
            writer.write((2**31 + n).to_bytes(4, "big"))
            await reader.read()
            writer.close()

        server = await asyncio.start_server(end, "127.0.0.1", 0)
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = Transport("a", "127.0.0.1:0", {"b": address}, None, lambda *_: None)
        await client.start()
        await until(lambda: n >= 5)
        await client.stop()
        server.close()

    asyncio.run(meet())
    assert len([words for words in caplog.messages if "cannot reach node b" in words]) == 1
