"""Sockets in folders that answer as agents do, from a thread."""

import asyncio
import contextlib
import json
import os
import threading


def status_of(node, neighbours, **more):
    return {
        "node": node, "round": 7, "residual": 1e-3, "neighbours": neighbours,
        "present": neighbours, "heard": neighbours, "nodes": 2, "tasks": {"flu": 9, "cold": 4},
        "groups": [["flu", "cold"]], "levels": {}, "calm": 0, "is_settled": False, "refused": 0,
        **more,
    }  # fmt: skip


class FakeAgents:
    """Sockets in folders that answer like agents, and keep what they were told."""

    def __init__(self, site, statuses):
        self.site, self.statuses, self.told = site, statuses, []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self.loop).result(10)

    async def _open(self):
        self.servers = []
        for name in self.statuses:
            (self.site / name).mkdir()
            place = os.path.relpath(self.site / name / "control.sock")

            async def answer(reader, writer, name=name):
                asked = json.loads(await reader.readline())
                if asked["command"] == "status":
                    said = self.statuses[name]
                else:
                    self.told.append((name, asked))
                    said = {"said": "done"}
                writer.write(json.dumps(said).encode() + b"\n")
                await writer.drain()
                writer.close()

            self.servers.append(await asyncio.start_unix_server(answer, place))

    def close(self, name=None):
        names = [name] if name else list(self.statuses)
        for one in names:
            with contextlib.suppress(FileNotFoundError):
                (self.site / one / "control.sock").unlink()

    def end(self):
        async def stop():
            for server in self.servers:
                server.close()
                await server.wait_closed()

        asyncio.run_coroutine_threadsafe(stop(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
