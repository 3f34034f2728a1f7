"""Certificates of the moment, for tests of who is believed to be who."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import Struct


class Certificate(Struct, frozen=True, kw_only=True):
    """A certificate, its key, and the files that they are in; the certificates of who vouches for it come behind it."""

    found: x509.Certificate
    private: ec.EllipticCurvePrivateKey
    paths: tuple[Path, Path]


def certificate(
    folder: Path, host: str, issuer: Certificate | None = None, *, days: tuple[int, int] = (-1, 1)
) -> Certificate:
    """Write a certificate for a host that is valid on these days from now; without an issuer it vouches for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).public_key(key.public_key())
    builder = builder.issuer_name(issuer.found.subject if issuer else name)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now + timedelta(days=days[0]))
    builder = builder.not_valid_after(now + timedelta(days=days[1]))
    builder = builder.add_extension(x509.SubjectAlternativeName([_named(host)]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    made = builder.sign(issuer.private if issuer else key, hashes.SHA256())
    stem = f"{made.serial_number:x}"
    paths = folder / f"{stem}.pem", folder / f"{stem}.key"
    behind = issuer.paths[0].read_bytes() if issuer else b""
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM) + behind)
    unencrypted = serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unencrypted))
    return Certificate(found=made, private=key, paths=paths)


def _named(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
