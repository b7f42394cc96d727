"""Serving the page: a port of loopback, a token, until Ctrl-C."""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import socket
import threading
import time
from collections.abc import Iterator

import uvicorn
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

from dtsvm.errors import NetworkError
from dtsvm.ui.page.app import make_app
from dtsvm.ui.page.scene import Scene

__all__ = ["Served", "is_loopback", "open_port", "serve", "serving"]

START_SECONDS = 10.0


class Served:
    """A page that is being served.

    Attributes
    ----------
    host, port : str, int
        Where.
    token : str
        What a viewer needs.
    """

    def __init__(self, host: str, port: int, token: str) -> None:
        self.host, self.port, self.token = host, port, token

    @property
    def base(self) -> str:
        """The address without the token."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{shown}:{self.port}/"

    @property
    def address(self) -> str:
        """The address to open."""
        return f"{self.base}?token={self.token}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def open_port(host: str, port: int) -> socket.socket:
    """Take a port, any free one for 0, before anything else is done."""
    try:
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        taken = socket.socket(family, socket.SOCK_STREAM)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(place)
        taken.listen()  # a browser that is quicker than the server waits instead of failing
    except OSError as error:
        raise NetworkError(
            f"The page cannot be served at {host}:{port} ({error.strerror or error}). "
            "Choose another --port, or 0 for any free one."
        ) from error
    return taken


def serve(scene: Scene, port: socket.socket, served: Served) -> None:
    """Serve a scene until Ctrl-C."""
    server = _server(scene, served)
    scene.start()
    try:
        # Small products ten times a second: a second BLAS thread would only spin.
        with contextlib.suppress(KeyboardInterrupt), threadpool_limits(1, "blas"):
            server.run(sockets=[port])
    finally:
        scene.stop()


@contextlib.contextmanager
def serving(scene: Scene, port: int = 0) -> Iterator[Served]:
    """Serve a scene on loopback in a thread, for as long as the block lasts."""
    taken = open_port("127.0.0.1", port)
    served = Served("127.0.0.1", taken.getsockname()[1], secrets.token_urlsafe(16))
    server = _server(scene, served)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    scene.start()
    try:
        deadline = time.monotonic() + START_SECONDS
        while not server.started:
            if time.monotonic() > deadline:
                raise NetworkError(f"The page did not start in {START_SECONDS:g} s.")
            time.sleep(0.01)
        with threadpool_limits(1, "blas"):
            yield served
    finally:
        server.should_exit = True
        scene.stop()
        thread.join()
        taken.close()


def _server(scene: Scene, served: Served) -> uvicorn.Server:
    def is_ending() -> bool:
        return server.should_exit

    config = uvicorn.Config(
        make_app(scene, served.token, is_ending),
        log_level="warning",
        lifespan="off",
        timeout_graceful_shutdown=1,
        server_header=False,
        ws="none",
    )
    server = uvicorn.Server(config)
    return server
