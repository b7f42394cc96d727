"""Who a node is: what it signs with, whom it believes, and secrets that two nodes share."""

from __future__ import annotations

import datetime
import hashlib
import time
from collections.abc import Callable
from typing import Protocol

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.x509.oid import NameOID

from dtsvm.errors import NetworkError

__all__ = ["Identity", "Nameless", "Signer", "named_in"]

MOST_REMEMBERED = 20_000
AHEAD = 2**47  # microseconds that a clock may be ahead of another: four years
Clock = Callable[[], datetime.datetime]


class Identity(Protocol):
    """What a node needs to speak for itself."""

    certificate: bytes
    agreement: bytes
    most: int  # `latest` as it last was

    def latest(self) -> int:
        """Return how far anybody can have counted by now: once a microsecond, since 1970."""

    def sign(self, content: bytes) -> bytes:
        """Return a signature."""

    def objection(self, name: str, certificate: bytes) -> str:
        """Return why a certificate does not stand for this node now, or nothing."""

    def is_signed(self, certificate: bytes, content: bytes, signature: bytes) -> bool:
        """Whether the owner of a certificate signed this."""

    def shared(self, agreement: bytes) -> bytes:
        """Return a secret known here and to the owner of the other half of the agreement."""


class _Agreement:
    """A fresh half of a key agreement, for one start of a node."""

    def __init__(self) -> None:
        self._half = X25519PrivateKey.generate()
        raw = serialization.Encoding.Raw, serialization.PublicFormat.Raw
        self.agreement = self._half.public_key().public_bytes(*raw)
        self._shared: dict[bytes, bytes] = {}
        self.most = self.latest()

    def latest(self) -> int:
        """Return how far anybody can have counted by now: once a microsecond, since 1970.

        Rounds, starts and the like take longer. Whoever is made to count so far by a lie can go on
        counting, for this goes on faster; and all nodes have the same bound, but for their clocks.
        """
        self.most = self._microseconds() + AHEAD
        return self.most

    def _microseconds(self) -> int:
        return time.time_ns() // 1000

    def shared(self, agreement: bytes) -> bytes:
        """Return a secret known here and to the owner of the other half of the agreement."""
        if agreement not in self._shared:
            if len(self._shared) >= MOST_REMEMBERED:
                self._shared.clear()
            self._shared[agreement] = self._exchange(agreement)
        return self._shared[agreement]

    def _exchange(self, agreement: bytes) -> bytes:
        """Return the shared secret; who has no key can have none, and spoils nobody else's."""
        try:
            return self._half.exchange(X25519PublicKey.from_public_bytes(agreement))
        except ValueError:
            return hashlib.sha256(agreement).digest()


class Nameless(_Agreement):
    """Without certificates, on one machine: everybody is believed."""

    certificate = b""

    def sign(self, content: bytes) -> bytes:
        """Return nothing."""
        return b""

    def objection(self, name: str, certificate: bytes) -> str:
        """Find nothing to object."""
        return ""

    def is_signed(self, certificate: bytes, content: bytes, signature: bytes) -> bool:
        """Believe it."""
        return True


class Signer(_Agreement):
    """A node with a certificate of the network's authority.

    Parameters
    ----------
    ca, certificate, key : bytes
        PEM.
    revoked : frozenset of int
        Serial numbers of certificates that are good no more.
    clock : callable
        Returns the time, with its zone.
    """

    def __init__(
        self,
        ca: bytes,
        certificate: bytes,
        key: bytes,
        revoked: frozenset[int] = frozenset(),
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or (lambda: datetime.datetime.now(datetime.UTC))
        super().__init__()
        self.renew(ca, certificate, key, revoked)

    def _microseconds(self) -> int:
        return int(1e6 * self._clock().timestamp())

    def renew(
        self, ca: bytes, certificate: bytes, key: bytes, revoked: frozenset[int] = frozenset()
    ) -> None:
        """Go on with another certificate or another list of revoked ones."""
        mine = x509.load_pem_x509_certificate(certificate)
        private = serialization.load_pem_private_key(key, None)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise NetworkError("A node's key must be an elliptic-curve key.")
        if private.public_key() != mine.public_key():
            raise NetworkError("The node's key does not belong to its certificate.")
        self._ca, self._key = x509.load_pem_x509_certificate(ca), private
        self.certificate = mine.public_bytes(serialization.Encoding.DER)
        self.revoked = revoked
        self._issued: dict[bytes, x509.Certificate] = {}
        self._verified: set[bytes] = set()

    def sign(self, content: bytes) -> bytes:
        """Return a signature."""
        return self._key.sign(content, ec.ECDSA(hashes.SHA256()))

    def objection(self, name: str, certificate: bytes) -> str:
        """Return why a certificate does not stand for this node now, or nothing."""
        known = self._read(certificate)
        if known is None:
            return "its certificate is not of this network's authority"
        if named_in(known) != name:
            return f"its certificate is that of {named_in(known)!r}"
        if known.serial_number in self.revoked:
            return "its certificate has been revoked"
        now = self._clock()
        if not known.not_valid_before_utc <= now <= known.not_valid_after_utc:
            return "its certificate has expired or is not valid yet"
        return ""

    def is_signed(self, certificate: bytes, content: bytes, signature: bytes) -> bool:
        """Whether the owner of a certificate signed this."""
        seen = hashlib.sha256(
            b"%d %d " % (len(certificate), len(signature)) + certificate + signature + content
        ).digest()
        if seen in self._verified:
            return True
        known = self._read(certificate)
        key = known.public_key() if known else None
        if not isinstance(key, ec.EllipticCurvePublicKey):
            return False
        try:
            key.verify(signature, content, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        if len(self._verified) >= MOST_REMEMBERED:
            self._verified.clear()
        self._verified.add(seen)
        return True

    def _read(self, certificate: bytes) -> x509.Certificate | None:
        """Return a certificate that the authority issued."""
        if certificate in self._issued:
            return self._issued[certificate]
        try:
            found = x509.load_der_x509_certificate(certificate)
            found.verify_directly_issued_by(self._ca)
        except (ValueError, TypeError, InvalidSignature):
            return None
        if len(self._issued) >= MOST_REMEMBERED:
            self._issued.clear()
        self._issued[certificate] = found
        return found


def named_in(certificate: x509.Certificate) -> str:
    """Return the node that a certificate names."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if len(names) == 1 else ""
