"""What strangers and loud neighbours cost: few connections, little time, bounded messages."""

import asyncio
import contextlib
import os
import sys

import pytest
from meetings import make_blocks, make_node
from test_transport import certified, knock, listening, until

from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.entry import Entry
from dtsvm.runtime.agent.node.frugal import is_frugal
from dtsvm.runtime.agent.node.hearsay import Hearsay
from dtsvm.runtime.agent.node.identity import Nameless
from dtsvm.runtime.agent.node.refuse import PROTOCOL, ROSTER_BYTES, Refused, parse, read_roster
from dtsvm.runtime.agent.node.roster import Roster
from dtsvm.runtime.agent.process import door, metrics, transport
from dtsvm.runtime.agent.process.door import MOST_PENDING
from dtsvm.runtime.agent.process.stream import BURST_SECONDS, SHARE, Limits, Stream
from dtsvm.runtime.agent.process.trouble import have_descriptors
from dtsvm.runtime.agent.site.certificates import make_authority


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    make_authority(folder, "ours")
    return {name: certified(folder, name) for name in "ab"}


async def silent(port, n):
    """Connections that say nothing."""
    found = await asyncio.gather(
        *(asyncio.open_connection("127.0.0.1", port) for _ in range(n)), return_exceptions=True
    )
    return [pair[1] for pair in found if isinstance(pair, tuple)]


def test_a_thousand_silent_strangers_do_not_keep_a_neighbour_out(network):
    async def meet():
        heard, most = [], 0
        async with listening(network["b"], lambda *got: heard.append(got)) as server:
            strangers = []
            for _ in range(50):  # no more at once than the system holds: it would be a second
                strangers += await silent(server.port, 20)
                await asyncio.sleep(0)
                most = max(most, len(server._door.pending))
            await knock("a", network["a"], server, lambda: heard)
            for writer in strangers:
                writer.transport.abort()
        return heard, most

    have_descriptors()
    heard, most = asyncio.run(meet())
    assert ("a", b"hello") in heard
    assert 0 < most <= MOST_PENDING


def test_silent_strangers_take_few_descriptors_however_fast_they_come(network):
    async def meet():
        async with listening(network["b"]) as server:
            before, most, strangers = len(os.listdir("/proc/self/fd")), 0, []
            for _ in range(20):
                strangers += await silent(server.port, 50)
                most = max(most, len(os.listdir("/proc/self/fd")) - before - len(strangers))
            for writer in strangers:
                writer.transport.abort()
            await asyncio.sleep(0.2)
        return most

    have_descriptors()
    assert asyncio.run(meet()) <= MOST_PENDING + 2


def begun(n, monkeypatch, then=None):
    """How many of n that begin a handshake are asked for a certificate at once."""
    n_asked = []

    async def welcome(self, connection):
        n_asked.append(connection.getpeername()[0])
        connection.close()

    async def meet():
        async with listening(None) as server:
            for _ in range(n):
                _, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(b"hello")
                writer.close()
                await asyncio.sleep(0)
            return await then(server, n_asked) if then else len(n_asked)

    monkeypatch.setattr(transport.Transport, "_welcome", welcome)
    return asyncio.run(meet())


def test_no_more_handshakes_are_begun_than_is_fair(monkeypatch):
    monkeypatch.setattr(door, "PACE", 1.0)
    assert 1 <= begun(40, monkeypatch) < 20


def test_who_comes_again_and_again_keeps_out_nobody_at_another_address(monkeypatch):
    monkeypatch.setattr(door, "PACE", 2.0)

    async def then(server, asked):
        n_before = len(asked)
        _, writer = await asyncio.open_connection(
            "127.0.0.1", server.port, local_addr=("127.0.0.2", 0)
        )
        writer.write(b"hello")
        while len(asked) < n_before + 2:  # the next, or the one after that if it was on its way
            await asyncio.sleep(0.02)
        writer.close()
        return asked[n_before:]

    assert "127.0.0.2" in begun(40, monkeypatch, then)


def test_fewer_are_asked_of_an_address_from_which_nobody_was_let_in(monkeypatch):
    monkeypatch.setattr(door, "REFUSED_PACE", 1e-3)

    async def then(server, asked):
        while not asked:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)  # of those that were begun before the first was refused
        before, writers = len(asked), []
        for address in ("127.0.0.1", "127.0.0.2"):
            _, writer = await asyncio.open_connection(
                "127.0.0.1", server.port, local_addr=(address, 0)
            )
            writer.write(b"hello")
            writers.append(writer)
        while len(asked) == before:
            await asyncio.sleep(0.02)
        for writer in writers:
            writer.close()
        return asked[before:]

    assert begun(3, monkeypatch, then) == ["127.0.0.2"]


@pytest.mark.parametrize("has_certificates", [True, False])
def test_who_says_nothing_is_given_up(network, monkeypatch, has_certificates):
    monkeypatch.setattr(transport, "HANDSHAKE_SECONDS", 0.2)

    async def meet():
        async with listening(network["b"] if has_certificates else None) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 30) == b""
            writer.close()
            while server._door.pending:
                await asyncio.sleep(0.01)

    asyncio.run(meet())


def test_who_asks_monitoring_and_says_nothing_takes_no_descriptors():
    async def meet():
        server = await metrics.serve("127.0.0.1:0", dict, str)
        port = server.sockets[0].getsockname()[1]
        before, strangers = len(os.listdir("/proc/self/fd")), await silent(port, 200)
        await asyncio.sleep(0.2)
        more = len(os.listdir("/proc/self/fd")) - before - len(strangers)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health HTTP/1.1\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 30)
        for one in (writer, *strangers):
            one.transport.abort()
        server.close()
        await asyncio.sleep(0.2)
        return more, answer

    have_descriptors()
    more, answer = asyncio.run(meet())
    assert more <= metrics.MOST_WAITING
    assert answer.endswith(b"well\n")


def test_a_handshake_of_a_byte_now_and_then_is_given_up(network, monkeypatch):
    monkeypatch.setattr(transport, "HANDSHAKE_SECONDS", 0.3)
    hello = bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, *range(200)])  # how TLS begins

    async def meet():
        async with listening(network["b"]) as server:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            n_sent = 0
            with contextlib.suppress(ConnectionError):
                for byte in hello:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    n_sent += 1
                    await asyncio.sleep(0.05)
            writer.close()
            while server._door.pending:
                await asyncio.sleep(0.01)
            return server.refused, n_sent

    refused, n_sent = asyncio.run(meet())
    assert refused == 1
    assert n_sent < len(hello)


def test_noise_instead_of_a_handshake_is_refused_before_one_is_begun(network, monkeypatch):
    async def welcome(self, connection):
        raise AssertionError("it was asked for a certificate")

    monkeypatch.setattr(transport.Transport, "_welcome", welcome)

    async def meet():
        async with listening(network["b"]) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n" * 1000)
            with contextlib.suppress(ConnectionError):
                await asyncio.wait_for(reader.read(), 30)
            writer.close()
            while server._door.pending:
                await asyncio.sleep(0.01)
            return server.refused

    assert asyncio.run(meet()) == 1


class Pipe(asyncio.Transport):
    """What a stream writes to, without a socket."""

    def __init__(self):
        super().__init__()
        self.is_paused = self.is_aborted = False

    def pause_reading(self):
        self.is_paused = True

    def resume_reading(self):
        self.is_paused = False

    def is_closing(self):
        return self.is_aborted

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def abort(self):
        self.is_aborted = True

    close = abort


def fed(data, limits):
    """A stream that has been given these bytes, and what it handed out."""

    async def feed():
        heard = []
        stream = Stream(
            lambda _: None, lambda _, message: heard.append(message), lambda _: None, limits
        )
        stream.connection_made(Pipe())
        stream.admit()
        for piece in data:
            stream.data_received(piece)
        return stream, heard

    return asyncio.run(feed())


def frame(message):
    return len(message).to_bytes(4, "big") + message


def test_messages_are_whole_however_they_arrive():
    messages = [b"", b"one", bytes(5000), b"two"]
    data = b"".join(map(frame, messages))
    for size in (1, 3, 1000, len(data)):
        pieces = [data[i : i + size] for i in range(0, len(data), size)]
        _, heard = fed(pieces, Limits())
        assert heard == messages


def test_a_message_that_is_too_long_ends_the_connection_before_it_is_read():
    stream, heard = fed([frame(b"ok"), (58_000_000).to_bytes(4, "big"), bytes(1000)], Limits(100))
    assert heard == [b"ok"]
    assert stream.transport.is_aborted
    assert stream.why == "a message of 58000000 bytes is too long"
    assert len(stream._buffer) <= 1004


def test_who_says_too_much_is_read_later():
    limits = Limits(messages_per_second=10.0)
    n = int(BURST_SECONDS * 10)
    stream, heard = fed([frame(b"x")] * n, limits)
    assert not stream.transport.is_paused
    stream, heard = fed([frame(b"x")] * (n + 1), limits)
    assert stream.transport.is_paused
    assert len(heard) == n + 1
    stream, _ = fed([frame(bytes(1000))] * 30, Limits(bytes_per_second=10_000.0))
    assert stream.transport.is_paused


def test_who_makes_much_work_is_read_later():
    async def feed():
        stream = Stream(lambda _: None, works, lambda _: None, Limits())
        stream.connection_made(Pipe())
        stream.admit()
        for _ in range(3):
            stream.data_received(frame(b"x"))
        return stream.transport.is_paused

    def works(stream, _):
        stream.work += seconds

    seconds = BURST_SECONDS / SHARE / 4
    assert not asyncio.run(feed())
    seconds = BURST_SECONDS / SHARE / 2
    assert asyncio.run(feed())


def test_a_new_connection_is_no_new_allowance():
    async def meet():
        async with listening(None) as server:
            found = []
            for _ in range(2):
                stream = Stream(lambda _: None, server._heard, server._closed, Limits())
                stream.connection_made(Pipe())
                server._take_over(stream, "a")
                server.charge("a", BURST_SECONDS)
                stream.data_received(frame(b""))
                found.append((stream.allowance, stream.transport.is_paused))
            return found

    (first, _), (second, is_paused) = asyncio.run(meet())
    assert first is second
    assert is_paused


def said_by_a(network, say):
    """The stream of a neighbour that talks by hand, as soon as `say` has said enough on it."""

    async def meet():
        async with listening(network["b"]) as server:
            context = network["a"].client_context()
            _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
            await until(lambda: server._lines["a"].stream)
            stream = server._lines["a"].stream
            await until(lambda: stream._n_beside)  # the handshake has been looked at
            await say(writer, stream)
            writer.transport.abort()
            return stream

    return asyncio.run(meet())


if sys.platform == "linux":
    import fcntl
    import termios
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="no other system tells")


@ON_LINUX
def test_who_sends_a_byte_a_record_is_read_later(network):
    async def say(writer, stream):
        writer.write((10_000).to_bytes(4, "big"))
        while stream.allowance.spend(0.0, asyncio.get_running_loop().time()) == 0.0:
            for _ in range(100):
                writer.write(b"x")
            await asyncio.sleep(0.01)

    stream = said_by_a(network, say)
    assert stream._read_at > 0.0
    assert len(stream._buffer) < 10_000


@ON_LINUX
@pytest.mark.parametrize(("n", "size"), [(2000, 100), (20, 300_000)])
def test_messages_are_not_taken_for_records_without_any(network, n, size):
    async def say(writer, stream):
        before = stream._n_beside
        for _ in range(n):
            writer.write(frame(bytes(size)))
        await until(lambda: stream._n_fair >= n * (size + 4))
        stream.charge_records()
        assert stream._n_beside <= before + 44

    said_by_a(network, say)


@ON_LINUX
def test_a_message_that_waits_to_be_read_is_not_taken_for_records_without_any(network):
    async def say(writer, stream):
        before = stream._n_beside
        stream.transport.pause_reading()  # as while a node solves
        writer.write(frame(bytes(1_000_000)))
        line = stream.transport.get_extra_info("socket")
        await until(lambda: fcntl.ioctl(line.fileno(), termios.FIONREAD, bytes(4))[2])
        stream.charge_records()
        assert stream._n_beside == before

    said_by_a(network, say)


@ON_LINUX
def test_a_neighbour_that_does_not_read_what_tls_answers_is_cut_off(network):
    async def say(writer, stream):
        stream.transport.get_write_buffer_size = lambda: 10**9
        await until(lambda: not stream.is_open)

    assert said_by_a(network, say).why == "it does not read what it is told"


def test_no_two_entries_make_a_roster_too_long_for_a_message():
    held = tuple(("\U00010000" * 250 + f"{i:04}", 0, 0, 0) for i in range(1000))
    couples = tuple((held[i][0], held[i + 1][0], 1, True) for i in range(500))
    entries = [Entry(name, 1, 1, tasks=held, couples=couples, agreement=bytes(32)) for name in "bc"]
    roster = Roster({one.name: one for one in entries}).to_wire()
    assert roster.ByteSize() > ROSTER_BYTES
    with pytest.raises(Refused, match="an entry of more than 500000 bytes"):
        read_roster(roster, 7, Nameless())


def test_many_in_league_do_not_make_a_roster_too_long_for_a_message():
    held = tuple((f"{i:04}".ljust(120, "x"), 0, 0, 0) for i in range(1000))
    couples = tuple((held[i][0], held[i + 1][0], 1, True) for i in range(500))
    long = [
        Entry(f"z{i:02}", 1, 1, tasks=held, couples=couples, agreement=bytes(32)) for i in range(40)
    ]
    short = [Entry(name, 1, 1, links=(("a", True),), agreement=bytes(32)) for name in "abcd"]
    one, other = Roster(), Roster()
    one.merge([*long, *short])
    for entry in [*reversed(long), *short]:  # in whatever order, and some of them again
        other.merge([entry])
    other.merge(one.entries.values())
    one.merge(long)
    assert one.digest == other.digest
    assert set("abcd") < one.entries.keys()
    assert len(one.entries) < 44
    assert one.left_out == {entry.name for entry in long} - one.entries.keys()
    assert min(one.left_out) in Hearsay("a", one, {}).words(0.0)[0]
    assert one.to_wire().ByteSize() <= ROSTER_BYTES
    entries, _ = read_roster(one.to_wire(), 7, Nameless())
    assert len(entries) == len(one.entries)


def test_a_neighbour_that_never_has_the_roster_does_not_have_it_packed_in_every_round(monkeypatch):
    node = make_node("a", ["b"], make_blocks(["a", "b"], ["one"]))
    n_packed, true = [], Roster.to_wire
    monkeypatch.setattr(Roster, "to_wire", lambda self: n_packed.append(1) or true(self))
    node.mail["b"].roster_digest = 5
    told = [node.begin(float(now))["b"] for now in range(20)]
    assert all(wire.Message.FromString(data).HasField("roster") for data in told)
    assert len(n_packed) <= 1 + len({wire.Message.FromString(d).roster_digest for d in told})


def nested(field, content):
    """A field that has more inside, as it travels."""
    length, size = b"", len(content)
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([field << 3 | 2]) + length + bytes([size]) + content


MANY = {
    "values": nested(11, b"") * 60_000,
    "sums": nested(13, b"") * 60_000,
    "members": nested(12, nested(1, b"") * 60_000),
    "tasks": nested(12, nested(1, nested(5, b"") * 60_000)),
}


@pytest.mark.parametrize("what", MANY)
def test_empty_parts_without_end_are_counted_before_they_are_decoded(what, monkeypatch):
    monkeypatch.setattr(wire, "Message", None)
    with pytest.raises(Refused, match="too many parts"):
        parse(MANY[what], 10**7)


def test_as_much_as_is_legal_is_decoded():
    held = tuple((f"t{i:04}".ljust(120, "x"), 0, 0, 0) for i in range(1000))
    links = tuple((f"n{i:03}".ljust(60, "x"), True) for i in range(500))
    some = {n: Entry(n, 1, 1, tasks=held, links=links, agreement=bytes(32)) for n in "abcdef"}
    data = wire.Message(protocol=PROTOCOL, roster=Roster(some).to_wire()).SerializeToString()
    assert len(parse(data, 10**7).roster.members) == len(some)
    assert is_frugal(data[:-1], 10, ((12, 10), (1, 10_000)))  # what is cut is the decoder's
