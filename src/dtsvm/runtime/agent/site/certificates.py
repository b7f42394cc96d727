"""A network's own certificate authority: it signs for nodes, and says whom it lets in no more."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dtsvm.data.files import write_atomically
from dtsvm.errors import NetworkError
from dtsvm.runtime.agent.node.names import NODE_NAME, check_name, shown

__all__ = [
    "make_authority",
    "make_certificate",
    "make_request",
    "read_revoked",
    "revoke",
    "sign",
    "write_private",
]

YEARS = 10


def make_authority(folder: Path, network: str) -> None:
    """Write ca.pem and its key: whoever has the key can let nodes into the network."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"dtsvm network {network}")
    certificate = (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(is_authority=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    write_private(folder / "ca.key", _key_bytes(key))
    (folder / "ca.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def make_certificate(authority: Path, folder: Path, node: str) -> None:
    """Write a node's certificate and key, signed by the authority, and the authority's own."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _issue(authority, node, key.public_key())
    write_private(folder / "node.key", _key_bytes(key))
    (folder / "node.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "ca.pem").write_bytes((authority / "ca.pem").read_bytes())


def make_request(folder: Path, node: str) -> Path:
    """Write a request to sign for the key in a folder, made if there is none, and return it.

    The key never leaves the folder.
    """
    private = folder / "node.key"
    if private.exists():
        key = serialization.load_pem_private_key(private.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
    else:
        key = ec.generate_private_key(ec.SECP256R1())
        write_private(private, _key_bytes(key))
    request = x509.CertificateSigningRequestBuilder().subject_name(_name(node))
    signed = request.sign(key, hashes.SHA256())
    path = folder / "node.csr"
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    return path


def sign(authority: Path, request: Path, out: Path) -> str:
    """Write the certificate that a request asks for; return the node's name."""
    try:
        asked = x509.load_pem_x509_csr(request.read_bytes())
    except (OSError, ValueError) as error:
        raise NetworkError(
            f"{request} is no signing request of 'dtsvm network request'."
        ) from error
    names = asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    node = str(names[0].value) if len(names) == 1 else ""
    key = asked.public_key()
    if not asked.is_signature_valid or not isinstance(key, ec.EllipticCurvePublicKey):
        raise NetworkError(f"{request} is not signed with the key that it names.")
    if not NODE_NAME.fullmatch(node):
        raise NetworkError(f"{request} asks for the name {shown(node)}, which no node can have.")
    certificate = _issue(authority, node, key)
    write_atomically(out, certificate.public_bytes(serialization.Encoding.PEM))
    return node


def revoke(authority: Path, certificates: list[Path]) -> Path:
    """Add certificates to the list of those that are good no more; return its path."""
    ca_key, ca = _authority(authority)
    path = authority / "revoked.pem"
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateRevocationListBuilder().issuer_name(ca.subject).last_update(now)
    builder = builder.next_update(now + datetime.timedelta(days=365 * YEARS))
    serials = (
        set(read_revoked(path, (authority / "ca.pem").read_bytes())) if path.exists() else set()
    )
    for file in certificates:
        serials.add(_read_certificate(file).serial_number)
    for serial in sorted(serials):
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now)
        builder = builder.add_revoked_certificate(entry.build())
    signed = builder.sign(ca_key, hashes.SHA256())
    write_atomically(path, signed.public_bytes(serialization.Encoding.PEM))
    return path


def read_revoked(path: Path, ca: bytes) -> frozenset[int]:
    """Return the serial numbers of a list that the authority signed."""
    try:
        found = x509.load_pem_x509_crl(path.read_bytes())
    except (OSError, ValueError) as error:
        raise NetworkError(f"{path} is no list of revoked certificates.") from error
    key = x509.load_pem_x509_certificate(ca).public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or not found.is_signature_valid(key):
        raise NetworkError(f"{path} was not signed by this network's authority.")
    return frozenset(entry.serial_number for entry in found)


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read, from its first byte on."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def _read_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise NetworkError(f"{path} is no certificate.") from error


def _authority(folder: Path) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    try:
        key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    except OSError as error:
        raise NetworkError(
            f"{folder / 'ca.key'} cannot be read: {error.strerror}. Signing needs the "
            "authority's key."
        ) from error
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key, _read_certificate(folder / "ca.pem")


def _issue(authority: Path, node: str, key: ec.EllipticCurvePublicKey) -> x509.Certificate:
    check_name(node)
    ca_key, ca = _authority(authority)
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return (
        _builder(_name(node), ca.subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(node)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(_usage(is_authority=False), critical=True)
        .sign(ca_key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=365 * YEARS))
    )


def _usage(is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
