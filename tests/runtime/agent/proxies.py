"""TCP proxies between neighbours, to cut links whose ends know nothing of it."""

import asyncio
import contextlib
import threading


class Link:
    """Carries bytes to a port, until it is cut."""

    def __init__(self):
        self.target = 0
        self.is_closed = False  # cut so that both ends are told: connections are closed, refused
        self.flows = asyncio.Event()  # cleared: cut so that nothing is said and nothing arrives
        self.flows.set()
        self.writers = set()

    async def open(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def _serve(self, reader, writer):
        self.writers.add(writer)
        if self.is_closed:
            writer.close()
            return
        with contextlib.suppress(OSError):
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
            self.writers.add(back)
            await asyncio.gather(self._copy(reader, back), self._copy(there, writer))
        writer.close()

    async def _copy(self, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                await self.flows.wait()
                writer.write(data)
                await writer.drain()
        writer.close()

    async def cut(self, how):
        if how == "silent":
            self.flows.clear()
            return
        self.is_closed = True
        for writer in self.writers:
            writer.close()
        self.writers.clear()

    async def heal(self):
        self.is_closed = False
        self.flows.set()


class Proxies:
    """A proxy for each of some links, served by a thread of their own."""

    def __init__(self, pairs):
        self.pairs = [tuple(sorted(pair)) for pair in pairs]

    def __enter__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.links = {}
        for pair in self.pairs:
            self.links[pair] = self._do(self._open())
        return self

    async def _open(self):
        link = Link()
        await link.open()
        return link

    @property
    def through(self):
        """(who dials, whom): the proxy's port."""
        return {pair: link.port for pair, link in self.links.items()}

    def lead_to(self, ports):
        for (_, other), link in self.links.items():
            link.target = ports[other]

    def cut(self, how):
        for link in self.links.values():
            self._do(link.cut(how))

    def heal(self):
        for link in self.links.values():
            self._do(link.heal())

    def _do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def __exit__(self, *_):
        self._do(self._stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    async def _stop(self):
        for link in self.links.values():
            link.server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
