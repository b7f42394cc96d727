"""A network's own certificate authority, and a certificate for each node."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["make_authority", "make_certificate", "write_private"]

YEARS = 10


def make_authority(folder: Path, network: str) -> None:
    """Write ca.pem and its key: whoever has the key can let nodes into the network."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"dtsvm network {network}")
    certificate = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(is_authority=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    write_private(folder / "ca.key", _key_bytes(key))
    (folder / "ca.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def make_certificate(authority: Path, folder: Path, node: str) -> None:
    """Write a node's certificate and key, signed by the authority, and the authority's own."""
    ca_key = serialization.load_pem_private_key((authority / "ca.key").read_bytes(), None)
    ca = x509.load_pem_x509_certificate((authority / "ca.pem").read_bytes())
    assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        _builder(_name(node), ca.subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(node)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(_usage(is_authority=False), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    write_private(folder / "node.key", _key_bytes(key))
    (folder / "node.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "ca.pem").write_bytes((authority / "ca.pem").read_bytes())


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read, from its first byte on."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
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
