"""A node's certificate and key, whom they let in, and what TLS makes of them."""

from __future__ import annotations

import contextlib
import functools
import os
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from dtsvm.runtime.agent.node.identity import Signer

__all__ = ["Credentials"]


@dataclass(frozen=True)
class Credentials:
    """The network's CA, a node's own certificate and key, as PEM, and who is no longer let in.

    Parameters
    ----------
    ca, certificate, key : bytes
        PEM.
    revoked : frozenset of int
        Serial numbers of certificates that are good no more.
    """

    ca: bytes
    certificate: bytes
    key: bytes = field(repr=False)
    revoked: frozenset[int] = frozenset()

    @functools.cached_property
    def signer(self) -> Signer:
        """What a node signs with."""
        return Signer(self.ca, self.certificate, self.key, self.revoked)

    def objection(self, name: str, certificate: bytes) -> str:
        """Return why a certificate does not stand for this node now, or nothing."""
        return self.signer.objection(name, certificate)

    def server_context(self) -> ssl.SSLContext:
        """Return what the end that is dialled needs."""
        return self._contexts[0]

    def client_context(self) -> ssl.SSLContext:
        """Return what the end that dials needs; names are compared by `objection`."""
        return self._contexts[1]

    @functools.cached_property
    def _contexts(self) -> tuple[ssl.SSLContext, ssl.SSLContext]:
        return self._context(ssl.PROTOCOL_TLS_SERVER), self._context(ssl.PROTOCOL_TLS_CLIENT)

    def _context(self, protocol: int) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=self.ca.decode("ascii"))
        with _as_file(self.certificate + b"\n" + self.key) as path:
            context.load_cert_chain(path)
        return context


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Give bytes a path, which is all that the library takes; in memory, where there is that."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("key")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{handle}"
        return
    with tempfile.NamedTemporaryFile() as file:  # only its owner can open it
        file.write(content)
        file.flush()
        yield file.name
