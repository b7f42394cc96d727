"""Asking all nodes of a network how they are, along its links.

The owner of one node asks; its question, signed, goes from neighbour to neighbour. Whoever lets
that node ask answers, and the answer goes back the way on which the question first came, sealed:
only the one that asked can read it, and only its owner can have written it. Who does not answer in
time is said not to have.

A question costs every node next to nothing, and no node asks more than a few times a second;
nothing is kept but the last question of every node that may ask.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from dtsvm.runtime.agent.node.identity import Identity
from dtsvm.runtime.agent.node.names import shown
from dtsvm.runtime.agent.node.refuse import MOST_COUNT
from dtsvm.runtime.agent.node.roster import Roster
from dtsvm.runtime.agent.node.spoken import is_spoken, said_by, speak

__all__ = ["Asking", "public", "readable"]

PROTOCOL = 904
MOST_BYTES = 24_000  # of a message
MOST_ANSWER = 12_000
MOST_ANSWERS = 3  # passed on for one node and question: one of them may be forged
GAP_SECONDS = 0.2  # between two questions of one node
MESSAGES, QUESTIONS = 1000.0, 20.0  # of a neighbour that are looked at in a second
MOST_NAMES, MOST_REASONS, MOST_TEXT = 64, 20, 200
NUMBERS = ("round", "residual", "gap", "nodes", "calm", "refused", "lies", "failures")
Messages = list[tuple[str, bytes]]
Mark = tuple[int, int]  # the number of a question, and how often it has been said


@dataclass
class _Question:
    """The last question of one node: since which start, which, when, and from whom it came."""

    agreement: bytes
    mark: Mark
    at: float
    back: str
    passed: dict[str, int] = field(default_factory=dict)  # answers, by who gave them


@dataclass
class Asking:
    """One node's part in being asked and in asking. It has no clock and no sockets.

    Parameters
    ----------
    name : str
        The node.
    network : int
        The network's id.
    roster : Roster
        Who is there.
    identity : Identity
        What it signs with, and with whom secrets are shared.
    status : callable
        Returns what the node says to its owner.
    may_ask : callable
        Whether the node of this name is answered.
    """

    name: str
    network: int
    roster: Roster
    identity: Identity
    status: Callable[[], Mapping[str, Any]] = dict
    may_ask: Callable[[str], bool] = lambda name: True
    refused: int = 0
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    _mark: Mark = (0, 0)
    _last: dict[str, _Question] = field(default_factory=dict)
    _allowance: dict[tuple[str, float], tuple[float, float]] = field(default_factory=dict)

    @staticmethod
    def is_mine(data: bytes) -> bool:
        """Whether a message belongs here: its first field is the protocol."""
        return is_spoken(PROTOCOL, data)

    # Asking

    def ask(self, number: int) -> Messages:
        """Ask everybody; `number` grows with every question, such as the time."""
        self._mark = (max(number, self._mark[0] + 1), 0)
        self.answers = {}
        return self.ask_again()

    def ask_again(self) -> Messages:
        """Repeat the question: messages get lost."""
        if self._mark[0] == 0 or self._mark[1] >= 100:
            return []
        self._mark = (self._mark[0], self._mark[1] + 1)
        said = {"asker": self.name, "mark": list(self._mark)}
        content = self._content(self.name, self.identity.agreement, self._mark)
        signature = self.identity.sign(content).hex()
        data = self._message({"question": {**said, "signature": signature}})
        return [(neighbour, data) for neighbour in self.roster.neighbours(self.name)]

    @property
    def silent(self) -> list[str]:
        """The nodes that have not answered."""
        return sorted(self.roster.distances(self.name).keys() - self.answers.keys() - {self.name})

    # Being told

    def hear(self, peer: str, data: bytes, now: float) -> Messages:
        """Take a neighbour's message; return what is to be sent, and to whom."""
        try:
            return self._hear(peer, data, now) if self._is_fair(peer, MESSAGES, now) else []
        except Exception:  # whatever a neighbour can make of a message
            self.refused += 1
            return []

    def _is_fair(self, peer: str, most: float, now: float) -> bool:
        """Whether a neighbour says no more in a second than is looked at."""
        then, left = self._allowance.get((peer, most), (now, most))
        left = min(left + most * (now - then), most)
        self._allowance[peer, most] = (now, max(left - 1.0, 0.0))
        return left >= 1.0

    def _hear(self, peer: str, data: bytes, now: float) -> Messages:
        said = said_by(peer, self.network, data, MOST_BYTES)
        if peer not in self.roster.neighbours(self.name):
            return []
        if "question" in said:
            return self._asked(peer, said["question"], now)
        return self._answered(peer, said["answer"])

    def _asked(self, peer: str, said: Any, now: float) -> Messages:
        asker, (number, times) = said["asker"], said["mark"]
        mark, entry = (int(number), int(times)), self.roster.entries.get(asker)
        if entry is None or asker not in self.roster.distances(self.name) or asker == self.name:
            return []
        if not (0 < mark[0] < MOST_COUNT and 0 < mark[1] <= 100):
            raise ValueError("it counts too far")
        last = self._last.get(asker)
        if last is not None:
            is_old = mark <= last.mark and entry.agreement == last.agreement
            if is_old or now - last.at < GAP_SECONDS:
                return []
        if not self._is_fair(peer, QUESTIONS, now):
            return []
        signature = bytes.fromhex(said["signature"])
        content = self._content(asker, entry.agreement, mark)
        if not self.identity.is_signed(entry.certificate, content, signature):
            raise ValueError("not signed by the one that asks")
        self._last[asker] = _Question(entry.agreement, mark, now, peer)
        question = self._message(
            {"question": {"asker": asker, "mark": list(mark), "signature": signature.hex()}}
        )
        others = [n for n in self.roster.neighbours(self.name) if n not in (peer, asker)]
        return [(peer, self._answer(asker, mark)), *((other, question) for other in others)]

    def _answer(self, asker: str, mark: Mark) -> bytes:
        found = public(self.status()) if self.may_ask(asker) else {"is_silent": True}
        for least in ("", "reasons", "tasks", "neighbours", "present", "trouble"):
            found.pop(least, None)  # what matters least, where all of it is too long
            text = json.dumps(found, allow_nan=False).encode()
            if len(text) <= MOST_ANSWER:
                break
        sealed = self._seal(self.name, asker, mark).encrypt(bytes(12), text, None)
        box = base64.b64encode(sealed).decode()
        said = {"asker": asker, "mark": list(mark), "node": self.name, "box": box}
        return self._message({"answer": said})

    def _answered(self, peer: str, said: Any) -> Messages:
        asker, node, mark = said["asker"], said["node"], tuple(map(int, said["mark"]))
        if node not in self.roster.entries or node == self.name:
            return []
        if asker == self.name:
            self._read(node, mark, said["box"])
            return []
        last = self._last.get(asker)
        if last is None or last.mark != mark or last.passed.get(node, 0) >= MOST_ANSWERS:
            return []
        last.passed[node] = last.passed.get(node, 0) + 1
        known = {"asker": asker, "mark": list(mark), "node": node, "box": str(said["box"])}
        return [(last.back, self._message({"answer": known}))]

    def _read(self, node: str, mark: Any, box: str) -> None:
        """Keep an answer to the last question, if its owner sealed it."""
        if mark[0] != self._mark[0] or not 0 < mark[1] <= self._mark[1]:
            return
        try:
            seal = self._seal(node, self.name, mark)
            text = seal.decrypt(bytes(12), base64.b64decode(box), None)
        except InvalidTag:
            self.refused += 1
            return
        self.answers.setdefault(node, readable(node, json.loads(text)))

    # What is said

    def _content(self, asker: str, agreement: bytes, mark: Mark) -> bytes:
        """Return what is signed; with each start of who asks, questions are counted anew."""
        said = ["dtsvm question", self.network, asker, agreement.hex(), *mark]
        return json.dumps(said, separators=(",", ":")).encode()

    def _seal(self, node: str, asker: str, mark: Mark) -> ChaCha20Poly1305:
        """What two nodes seal one answer with: used once, so that its nonce may be zero."""
        other = asker if node == self.name else node
        secret = self.identity.shared(self.roster.entries[other].agreement)
        about = f"dtsvm answer {self.network} {node} {asker} {mark[0]} {mark[1]}".encode()
        return ChaCha20Poly1305(hashlib.blake2b(about, key=secret, digest_size=32).digest())

    def _message(self, said: Mapping[str, Any]) -> bytes:
        return speak(PROTOCOL, self.network, self.name, said)


def public(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a node says of its status to others: no rows, nothing of what it spent.

    Examples
    --------
    >>> found = public({"round": 7, "residual": float("inf"), "tasks": {"flu": 120}})
    >>> found["round"], found["residual"], found["tasks"]
    (7, None, ['flu'])
    """
    found: dict[str, Any] = {name: _number(status.get(name)) for name in NUMBERS}
    found["is_settled"] = bool(status.get("is_settled"))
    for name in ("tasks", "neighbours", "present"):
        found[name] = [_text(one) for one in list(status.get(name, ()))[:MOST_NAMES]]
    reasons = list(dict(status.get("reasons", {})).items())[:MOST_REASONS]
    found["reasons"] = {_text(name): _text(why) for name, why in reasons}
    found["trouble"] = _text(status.get("trouble") or "")
    choosing = status.get("choosing")
    names = ("tracks", "certified", "rounds", "times_begun")
    if isinstance(choosing, Mapping):
        found["choosing"] = {name: _number(choosing.get(name)) or 0 for name in names}
    return found


def readable(node: str, said: Any) -> dict[str, Any]:
    r"""Return an answer as it may be shown: names are names, numbers numbers, text is escaped.

    Examples
    --------
    >>> found = readable("b", {"round": "x", "tasks": ["a" + chr(27)], "reasons": []})
    >>> found["node"], found["round"], found["tasks"], found["is_settled"]
    ('b', None, ['a\\x1b'], False)
    """
    if not isinstance(said, dict):
        said = {}
    lists = {name: said.get(name) for name in ("tasks", "neighbours", "present")}
    whole = {name: one if isinstance(one, list) else [] for name, one in lists.items()}
    reasons, choosing = said.get("reasons"), said.get("choosing")
    found = public(
        {
            **said,
            **whole,
            "is_settled": said.get("is_settled") is True,
            "reasons": reasons if isinstance(reasons, dict) else {},
            "choosing": choosing if isinstance(choosing, dict) else None,
        }
    )
    return {**found, "node": node, "is_silent": said.get("is_silent") is True}


def _number(value: Any) -> float | int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) and abs(value) < 2.0**64 else None


def _text(value: object) -> str:
    """Cut and escape text, so that a terminal obeys nothing in it."""
    text = str(value)[:MOST_TEXT]
    return text if text.isprintable() else shown(text)[1:-1]
