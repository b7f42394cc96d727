"""Nothing ends an agent but its owner, and what was acknowledged is on disk."""

import asyncio
import datetime
import errno
import json
import math
import os
import signal
import time

import numpy as np
import pytest
from forks import ForkedAgents
from meetings import FIXED, make_blocks, make_node
from sites import make_site, status, write_rows
from test_wire import make_process, started

from dtsvm import Network
from dtsvm.errors import ModelFileError, NetworkError
from dtsvm.runtime.agent.node.identity import Signer
from dtsvm.runtime.agent.node.refuse import MOST_COUNT
from dtsvm.runtime.agent.node.timing import Timing
from dtsvm.runtime.agent.process.metrics import as_text
from dtsvm.runtime.agent.process.process import MOST_WRITES, ask
from dtsvm.runtime.agent.process.trouble import Trouble
from dtsvm.runtime.agent.site import site as site_module
from dtsvm.runtime.agent.site.certificates import make_authority, make_certificate
from dtsvm.runtime.agent.site.checkpoint import (
    Told,
    _pack,
    _read,
    dump,
    read_told,
    repaired,
    restore,
)
from dtsvm.runtime.agent.site.config import read_config
from dtsvm.runtime.agent.site.rows import SiteRows
from dtsvm.runtime.agent.site.site import Site
from dtsvm.svm.model_file import save_model


def test_errors_in_rounds_messages_and_files_are_survived(tmp_path, caplog):
    blocks = make_blocks(["a", "b"], ["one"])

    async def run():
        b = make_process(tmp_path, "b", {"a": "127.0.0.1:1"}, blocks)
        task_b = await started(b)
        a = make_process(tmp_path, "a", {"b": f"127.0.0.1:{b.transport.port}"}, blocks)
        broken = {"solve": 3, "take_numbers": 3, "take_whole": 3, "keep": 3}

        def once(what, do):
            def call(*args):
                if a.node.round > 20 and broken[what]:
                    broken[what] -= 1
                    raise FloatingPointError(f"broken\n{what}")
                return do(*args)

            return call

        for what in ("solve", "take_numbers", "take_whole"):
            setattr(a.node, what, once(what, getattr(a.node, what)))
        a.keep = once("keep", lambda change: None)
        task_a = await started(a)
        while a.node.round < 200 or b.node.round < 200:
            await asyncio.sleep(0.01)
        for process, task in ((a, task_a), (b, task_b)):
            process.stop()
            await task
        return a, broken

    a, broken = asyncio.run(run())
    assert broken["solve"] == broken["take_numbers"] == broken["take_whole"] == 0
    assert a.trouble.failures >= 9
    said = [words for words in caplog.messages if "goes on after an error" in words]
    assert any(r"FloatingPointError 'broken\nsolve'" in words for words in said)
    assert len(said) <= 4  # once a minute and place


def make_agent(folder, **more):
    """The site of node a, linked to b, with two tasks."""
    blocks = make_blocks(["a", "b"], ["one", "two"])
    if not (folder / "a").exists():
        make_site(folder, Network.line(["a", "b"]), blocks, FIXED, **more)
    site = Site(read_config(folder / "a" / "node.toml"), save_model)
    site.node.now = 0.0
    return site


def tell(site, **asked):
    """Ask a site's process, which does not run."""
    from dtsvm.runtime.agent.process.process import Process
    from dtsvm.runtime.agent.process.transport import Transport

    async def answer():
        line = Transport("a", "127.0.0.1:0", site.neighbours, None, print)
        process = Process(
            site.node, line, site.config.folder, site.keep, site.write_model,
            {"rows": site.tell_rows},
        )  # fmt: skip
        return await process._answer(asked)

    return asyncio.run(answer())


def test_what_was_acknowledged_is_there_after_a_restart(tmp_path):
    site = make_agent(tmp_path)
    X, y = make_blocks(["a"], ["one"], n=25, seed=8)["a", "one"]
    write_rows(tmp_path / "more.csv", X, y)
    for asked in (
        {"command": "rows", "file": str(tmp_path / "more.csv"), "task": "one"},
        {"command": "link", "name": "c", "address": "127.0.0.1:5000"},
        {"command": "unlink", "name": "b"},
        {"command": "decouple", "task": "one"},
    ):
        assert "said" in tell(site, **asked), asked
        again = make_agent(tmp_path)
        assert again.node.status()["tasks"] == site.node.status()["tasks"]
        assert again.neighbours == site.neighbours
        assert again.node.groups() == site.node.groups()
    assert again.node.status()["tasks"] == {"one": 37, "two": 12}
    assert again.neighbours == {"c": "127.0.0.1:5000"}
    assert again.node.groups() == [["one"], ["two"]]
    assert "said" in tell(again, command="couple", tasks=["one", "two"])
    assert "said" in tell(again, command="leave", task="two")
    last = make_agent(tmp_path)
    assert last.node.status()["tasks"] == {"one": 37}
    assert last.node.presence.told == 6


@pytest.mark.parametrize(
    "asked",
    [
        {"command": "link", "name": "c", "address": "127.0.0.1:5000"},
        {"command": "unlink", "name": "b"},
        {"command": "decouple", "task": "one"},
        {"command": "leave", "task": "one"},
        {"command": "rows", "task": "one"},
    ],
)
def test_with_a_full_disk_nothing_is_acknowledged_and_nothing_changed(tmp_path, monkeypatch, asked):
    site = make_agent(tmp_path)
    site.keep({})
    write_rows(tmp_path / "more.csv", *make_blocks(["a"], ["one"], seed=8)["a", "one"])
    before = site.node.status(), site.neighbours, site.node.roster.digest
    content = (tmp_path / "a" / "checkpoint.npz").read_bytes()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(site_module, "write_atomically", full)
    answer = tell(site, file=str(tmp_path / "more.csv"), **asked)
    assert "No space left on device. Nothing was changed" in answer["error"]
    assert (site.node.status(), site.neighbours, site.node.roster.digest) == before
    assert (tmp_path / "a" / "checkpoint.npz").read_bytes() == content
    monkeypatch.undo()
    assert "said" in tell(site, file=str(tmp_path / "more.csv"), **asked)


def test_what_was_acknowledged_survives_a_kill_right_after(tmp_path):
    make_agent(tmp_path, start_seconds=0.1)
    X, y = make_blocks(["a"], ["one"], n=5, seed=8)["a", "one"]
    write_rows(tmp_path / "more.csv", X, y)
    rows = {"command": "rows", "file": str(tmp_path / "more.csv"), "task": "one"}
    for asked, n_rows, neighbours, groups in (
        (rows, 17, ["b"], [["one", "two"]]),
        ({"command": "link", "name": "c", "address": "127.0.0.1:5"}, 17, ["b", "c"], None),
        ({"command": "decouple", "task": "one"}, 17, ["b", "c"], [["one"], ["two"]]),
        ({"command": "unlink", "name": "b"}, 17, ["c"], [["one"], ["two"]]),
        (rows, 22, ["c"], [["one"], ["two"]]),
        ({"command": "leave", "task": "two"}, 22, ["c"], [["one"]]),
    ):
        with ForkedAgents(tmp_path) as agents:
            agents.start("a")
            agents.wait_for(lambda: status(tmp_path, "a").get("tasks"))
            said = asyncio.run(ask(tmp_path / "a", **asked))
            os.kill(agents.running["a"].pid, signal.SIGKILL)
            assert "said" in said
            agents.running.pop("a").wait()
        again = make_agent(tmp_path)
        assert again.node.status()["tasks"]["one"] == n_rows
        assert sorted(again.neighbours) == neighbours
        assert again.node.groups() == (groups or [["one", "two"]])


def test_an_old_checkpoint_is_noticed(caplog):
    blocks = make_blocks(["a", "b"], ["one"])
    a, b = make_node("a", ["b"], blocks), make_node("b", ["a"], blocks)
    old = dump(a)
    for _ in range(3):
        a.tell_owner()
    b.take("a", a.hello(1.0)["b"], 1.0)
    again = make_node("a", ["b"], blocks, incarnation=5)
    restore(again, old)
    again.take("b", b.hello(2.0)["a"], 2.0)
    again.hello(2.0)
    assert "went on from an old checkpoint: the network remembers 3 changes" in caplog.text
    assert again.roster.entries["a"].age > a.roster.entries["a"].age


def test_a_checkpoint_that_counts_too_far_is_refused_and_repaired():
    blocks = make_blocks(["a"], ["one"])
    node = make_node("a", ["b"], blocks)
    content = dump(node, Told(later=(("one", "later/000001.csv", 12),)))
    arrays = _read(content, "It")
    head = json.loads(arrays["head"].tobytes())
    head["round"] = MOST_COUNT - 1
    arrays["estimate0"] = np.full_like(arrays["estimate0"], np.nan)
    bad = _pack(head, arrays)
    with pytest.raises(ModelFileError, match="has counted too far; begin to count anew"):
        restore(make_node("a", ["b"], blocks, incarnation=2), bad)
    good, n_rows = repaired(bad)
    assert n_rows == 12
    again = make_node("a", ["b"], blocks, incarnation=2)
    restore(again, good)
    assert again.round == 0
    assert read_told(good).later == (("one", "later/000001.csv", 12),)
    assert np.isfinite(again.decision("one")).all()


def test_a_key_that_others_can_read_is_refused(tmp_path):
    make_agent(tmp_path)
    key = tmp_path / "a" / "node.key"
    config = read_config(tmp_path / "a" / "node.toml")
    assert config.credentials().key == key.read_bytes()
    key.chmod(0o644)
    with pytest.raises(NetworkError, match=r"can be read by others \(mode 0644\)"):
        config.credentials()


def test_a_folder_in_the_place_of_its_node_toml_is_named(tmp_path):
    with pytest.raises(NetworkError, match=r"is a folder\. Name its file: .*node\.toml\.$"):
        read_config(tmp_path)


def test_names_and_addresses_cannot_write_configuration(tmp_path):
    from dtsvm.runtime.agent.site.config import to_toml

    odd = 'x"\n[settings]\nC = 9\n# \x7f \u00e9 \\'
    text = to_toml("a", "0abc", "127.0.0.1:5", {}, {odd[:3]: {"label": odd}}, {"C": 1.0})
    path = tmp_path / "node.toml"
    path.write_text(text)
    with pytest.raises(NetworkError, match="cannot be the name of a task"):
        read_config(path)
    path.write_text(to_toml("a", "0abc", "127.0.0.1:5", {}, {"t": {"label": odd}}, {"C": 1.0}))
    config = read_config(path)
    assert config.tasks["t"].label == odd
    assert config.settings.C == 1.0
    good = path.read_text()
    path.write_text(good.replace('listen = "127.0.0.1:5"', 'listen = "a b:5"'))
    with pytest.raises(NetworkError, match="'a b:5' is no address"):
        read_config(path)


def test_an_agent_that_is_alone_or_stalled_says_so(caplog):
    node = make_node("a", ["b"], make_blocks(["a"], ["one"]), timing=Timing(alarm_seconds=5.0))
    trouble = Trouble(node)
    trouble.watch(trouble._company_at + 4.0)
    assert trouble.words() == ""
    trouble.watch(trouble._company_at + 6.0)
    assert trouble.words() == "alone: no neighbour was heard for 5 s"
    trouble.watch(trouble._company_at + 7.0)
    assert [words for words in caplog.messages if "ALARM" in words] == [
        "ALARM node a is alone: no neighbour was heard for 5 s."
    ]
    node.mail.clear()
    node.residual = 0.5
    now = trouble._better_at + 100.0
    trouble.watch(now)
    trouble.watch(now + 6.0)
    assert trouble.words() == "stalled: no better residual than 5.0e-01 for 5 s"
    node.residual = 0.1
    trouble.watch(now + 7.0)
    assert trouble.words() == ""


def test_a_node_whose_own_certificate_has_expired_says_so(tmp_path):
    make_authority(tmp_path, "ours")
    make_certificate(tmp_path, tmp_path, "a")
    files = [(tmp_path / file).read_bytes() for file in ("ca.pem", "node.pem", "node.key")]

    async def run():
        process = make_process(tmp_path, "a", {}, make_blocks(["a"], ["one"]))
        process.node.identity = Signer(*files)
        before = process.status()["apart"]
        late = datetime.datetime(2199, 1, 1, tzinfo=datetime.UTC)
        process.node.identity._clock = lambda: late
        return before, process.status()["apart"]

    before, after = asyncio.run(run())
    assert before == []
    assert after == [
        "others refuse this node: its certificate has expired or is not valid yet. Put a new one "
        "into its folder."
    ]


def test_who_wakes_a_node_up_again_and_again_does_not_have_it_write_without_end(tmp_path):
    async def run():
        process = make_process(tmp_path, "a", {}, make_blocks(["a"], ["one"]))
        written = []
        process.write_model = written.append
        process.node.round = 1
        for _ in range(3 * MOST_WRITES):
            process._is_written = False
            process._write()
        assert not process._is_written  # it is tried again
        process.stop()
        process._write()
        return len(written)

    assert asyncio.run(run()) == MOST_WRITES + 1


def test_a_crash_undoes_a_tenth_of_the_work_or_what_five_seconds_did(tmp_path):
    async def run():
        process = make_process(tmp_path, "a", {}, make_blocks(["a"], ["one"]))
        waits = []
        for worked, took in [(0.1, 0.0), (10.0, 0.0), (1000.0, 0.0), (1.0, 0.05), (1.0, 9.0)]:
            process._kept_at = process._rested_at + worked
            process._keep_seconds = took
            waits.append(process._keep_due - process._kept_at)
        return waits

    assert asyncio.run(run()) == pytest.approx([0.01, 1.0, 5.0, 1.0, 5.0])


def test_a_settled_node_says_so_again_soon_and_then_seldom(tmp_path):
    """As its last words may have been lost, and the others wait for them."""

    async def run():
        process = make_process(tmp_path, "a", {}, make_blocks(["a"], ["one"]))
        process.node.timing = Timing()
        process._begun_at, now, signs = 100.0, 100.0, []
        while now < 105.0:
            process._greeted = (now, *process._greeted[1:])
            now += process._until_next_sign
            signs.append(now - 100.0)
        return signs

    signs = asyncio.run(run())
    assert signs[:3] == pytest.approx([0.1, 0.2, 0.4])
    assert np.diff(signs[3:]) == pytest.approx(0.5)


def test_a_neighbour_is_charged_for_arithmetic_and_not_for_what_a_busy_machine_does(tmp_path):
    """Else honest neighbours were read later and later, until they counted as gone."""

    def idle(*said):
        time.sleep(0.02)

    def busy(*said):
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass

    async def run():
        process = make_process(tmp_path, "a", {}, make_blocks(["a"], ["one"]))
        charged = []
        process._charge = lambda peer, seconds: charged.append(seconds)
        for process.node.take_whole in (busy, idle):
            process.hear("b", b"words")
        return charged

    charged = asyncio.run(run())
    assert charged[0] >= 0.02
    assert sum(charged[1:]) < 0.01


def test_the_status_says_who_is_not_believed_by_whom(tmp_path):
    async def run():
        process = make_process(tmp_path, "a", {"b": "127.0.0.1:1"}, make_blocks(["a"], ["one"]))
        now, mail = time.monotonic(), process.node.mail["b"]
        mail.heard_at, mail.roster_digest = now, 5
        why = {"c": "its certificate has been revoked"}
        for moment in (now - 30.0, now):
            process.node.inbox.hearsay.note("b", {"a", "b", "c"}, why, moment)
        return process.status()["apart"]

    assert asyncio.run(run()) == [
        "node b believes node c, and this node does not (its certificate has been revoked), so no "
        "sum over the network ends: copy revoked.pem to every folder."
    ]


def test_monitoring_reads_numbers_and_health(tmp_path):
    blocks = make_blocks(["a"], ["one"])

    async def get(port, path):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        answer = (await reader.read()).decode()
        writer.close()
        return answer

    async def run():
        from sites import free_ports

        (port,) = free_ports(1)
        process = make_process(tmp_path, "a", {}, blocks)
        process.metrics = f"127.0.0.1:{port}"
        task = await started(process)
        while process.node.round < 5:
            await asyncio.sleep(0.01)
        answers = [await get(port, path) for path in ("/metrics", "/health", "/else")]
        process.stop()
        await task
        return answers

    found = asyncio.run(run())
    assert found[0].startswith("HTTP/1.1 200 OK\r\n")
    assert '\ndtsvm_round{node="a"} ' in found[0]
    assert '\ndtsvm_refused_total{node="a"} 0\n' in found[0]
    assert found[1].startswith("HTTP/1.1 200 OK\r\n")
    assert found[2].startswith("HTTP/1.1 404 Not Found\r\n")
    infinite = {"node": "a", "residual": math.inf, "present": [], "neighbours": []}
    assert "residual" not in as_text(infinite)


def test_monitoring_is_on_loopback_only(tmp_path):
    process_args = make_blocks(["a"], ["one"])

    async def run():
        process = make_process(tmp_path, "a", {}, process_args)
        process.metrics = "0.0.0.0:9464"
        await process.run()

    with pytest.raises(NetworkError, match="is not on loopback"):
        asyncio.run(run())


def test_a_node_without_rows_of_its_own_has_the_columns_that_it_names(tmp_path):
    blocks = make_blocks(["a"], ["one"], p=3)
    make_site(tmp_path, Network.line(["a", "b"]), blocks, {"C": 0.1})
    with (tmp_path / "b" / "node.toml").open("a") as file:
        file.write('\n[tasks.one]\nfeatures = ["x0", "x1", "x2"]\nlabels = [-1, 1]\n')
    a, b = (SiteRows(read_config(tmp_path / name / "node.toml"), None) for name in "ab")
    assert b.described() == a.described() == "x0, x1, x2"
    assert b.first["one"].X.shape == (0, 3)
