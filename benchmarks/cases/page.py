"""The live page: 200 nodes in a browser, updates a second and processor time of both sides.

`dtsvm demo page --nodes 200` in one process, 30 rounds a second; a headless Chromium looks at it
while it trains. Updates are changes of the round that reached the page; processor time is that of
the server's process and of all Chromium's processes, as the system counts it, over the same
seconds. Headless Chromium paints by software: a browser with a graphics card does less.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results import measured
from benchmarks.settings import MissingData, Settings

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update"
)
SECONDS = 7.0  # the network has settled after eleven
COUNT = """() => { window.updates = 0; new MutationObserver(() => { window.updates += 1; }).observe(
  document.getElementById("round"), { childList: true, characterData: true, subtree: true }); }"""


def run(settings: Settings) -> list[dict]:
    nodes = settings.pick(200, 20)
    runs = [_look(nodes, settings.pick(SECONDS, 2.0)) for _ in range(settings.pick(3, 1))]

    def median(key: str) -> float:
        return float(np.median([one[key] for one in runs]))

    server, browser = median("server"), median("browser")
    return [
        measured(f"{nodes} nodes, updates", median("updates"), unit="a second",
                 goal=("at least", 9.9, None)),
        measured(f"{nodes} nodes, server and browser", server + browser, unit="of a core",
                 ours=server, rival=browser, sides="of a core", goal=("at most", 0.5, None),
                 note="the server's part and the browser's beside it", runs=runs),
    ]  # fmt: skip


def _look(nodes: int, seconds: float) -> dict[str, float]:
    """Open the page of a network that begins to train; return what the seconds after took."""
    with _driver() as playwright:
        before = _processes()
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if program is None:
            raise MissingData("There is no Chromium here.")
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS.split())
        page = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
        server, address = _serve(nodes)
        try:
            page.goto(address)
            page.wait_for_selector("#network .node")
            page.wait_for_timeout(1000)
            page.evaluate(COUNT)
            looking = [pid for pid in _processes() - before if _name(pid).startswith("chrom")]
            start, began = [_seconds(server.pid), sum(map(_seconds, looking))], time.monotonic()
            page.wait_for_timeout(1000 * seconds)
            took = time.monotonic() - began
            after = [_seconds(server.pid), sum(map(_seconds, looking))]
            updates = page.evaluate("window.updates")
            if page.inner_text("#state") != "training":
                raise RuntimeError("The network settled before the time was over.")
        finally:
            server.terminate()
            server.wait()
            browser.close()
    return {
        "updates": updates / took,
        "server": (after[0] - start[0]) / took,
        "browser": (after[1] - start[1]) / took,
    }


def _driver() -> Any:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise MissingData("Playwright is not installed.") from error
    return sync_playwright()


def _serve(nodes: int) -> tuple[subprocess.Popen[str], str]:
    command = [str(Path(sys.executable).with_name("dtsvm")), "demo", "page", "--no-open"]
    server = subprocess.Popen(
        [*command, "--nodes", str(nodes)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    line = server.stdout.readline()
    return server, line[line.index("http") :].strip()


def _processes() -> set[int]:
    return {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()}


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def _seconds(pid: int) -> float:
    """Return the processor time of a process and of its threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
