"""Who vouches for what was agreed on: those who added it up themselves sign its digest.

Signatures travel with what was agreed, so that a newcomer sees who stands behind it, whoever hands
it over. Who only took it over passes them on and adds none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dtsvm.runtime.agent.node.agreed import Agreed
from dtsvm.runtime.agent.node.identity import Identity
from dtsvm.runtime.agent.node.names import check_name

__all__ = ["Vouching"]

MOST = 16  # that are kept and passed on
MOST_TEXT = 8192  # of a certificate or a signature, in hexadecimal


@dataclass
class Vouching:
    """The signatures that one node knows, by what they are of.

    Parameters
    ----------
    name : str
        The node.
    network : int
        The network's id.
    identity : Identity
        What it signs with, and whom it believes.
    """

    name: str
    network: int
    identity: Identity
    _known: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)

    def begin(self, agreed: Agreed, vouched: Mapping[str, Any]) -> None:
        """Go on with signatures that were kept; its own is made with the certificate it has now."""
        self.hear(_digest(agreed), vouched)
        if self.name in vouched:
            self.sign(agreed)

    def sign(self, agreed: Agreed) -> None:
        """Vouch for what this node has added up itself."""
        signature = self.identity.sign(self._content(_digest(agreed))).hex()
        mine = self._known.setdefault(_digest(agreed), {})
        mine[self.name] = (self.identity.certificate.hex(), signature)

    def who(self, agreed: Agreed) -> frozenset[str]:
        """Return the nodes that vouch for it, this one too if it does."""
        some = self._known.get(_digest(agreed), {})
        return frozenset(n for n, said in some.items() if self._is_good(n, _digest(agreed), said))

    def notes(self, agreed: Agreed) -> list[str]:
        """Say that too few stand behind what was taken over, if so."""
        who = self.who(agreed)
        if self.name in who or len(who) > 1:
            return []
        said = f"only node {min(who)} vouches" if who else "nobody vouches"
        return [
            f"{said} for the columns, scales and labels that were taken over. Link a second "
            "neighbour, or 'dtsvm tell NODE prepare' to agree on them anew."
        ]

    def to_dict(self, agreed: Agreed) -> dict[str, list[str]]:
        """Return signatures of what was agreed as plain JSON values, this node's first."""
        some = self._known.get(_digest(agreed), {})
        names = sorted(some, key=lambda name: (name != self.name, name))
        return {name: list(some[name]) for name in names[:MOST]}

    def hear(self, digest: str, said: Mapping[str, Any], used: Iterable[Agreed] = ()) -> None:
        """Keep good signatures; bad ones are left out.

        Of few things that nodes can have agreed on: what is not `used` gives way, or is not heard.
        """
        mine = dict(self._known.get(digest, {}))
        for name, both in self._read(said):
            if len(mine) < MOST and name not in mine and self._is_good(name, digest, both):
                mine[name] = both
        if mine and (digest in self._known or self._has_room(used)):
            self._known[digest] = mine

    def _has_room(self, used: Iterable[Agreed]) -> bool:
        if len(self._known) >= MOST:
            kept = {_digest(one) for one in used}
            other = next((one for one in self._known if one not in kept), None)
            if other is None:
                return False
            del self._known[other]
        return True

    def digest(self, agreed: Agreed) -> str:
        """Name what was agreed."""
        return _digest(agreed)

    def _read(self, said: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, str]]]:
        for name, both in list(said.items())[:MOST]:
            certificate, signature = (str(part) for part in both)
            if max(len(certificate), len(signature)) <= MOST_TEXT:
                yield check_name(name), (certificate, signature)

    def _is_good(self, name: str, digest: str, said: tuple[str, str]) -> bool:
        certificate, signature = (bytes.fromhex(part) for part in said)
        if self.identity.objection(name, certificate):
            return False
        return self.identity.is_signed(certificate, self._content(digest), signature)

    def _content(self, digest: str) -> bytes:
        return json.dumps(["dtsvm agreed", self.network, digest]).encode()


def _digest(agreed: Agreed) -> str:
    text = json.dumps(agreed.to_dict(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
