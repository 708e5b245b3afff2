"""
Certificates for a façade with TLS: a certificate authority of its own, and a server certificate for this machine.

They are made anew for each start and are valid for a year. The key of the authority is not kept. Needs the package
`cryptography`.
"""

import datetime
import ipaddress
from pathlib import Path
from typing import Final

import msgspec

from lamina.model.errors import InputError

NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
ADDRESSES: Final = ("127.0.0.1", "::1")
VALID: Final = datetime.timedelta(days=365)
EARLIER: Final = datetime.timedelta(hours=1)
"""How long certificates are valid already: clocks of containers may differ."""


class TlsFiles(msgspec.Struct, frozen=True):
    """Files of one server, in PEM."""

    ca: Path
    cert: Path
    key: Path


def make_tls_files(folder: Path) -> TlsFiles:
    """Write a new authority, certificate and key to *folder*. Raises InputError if `cryptography` is not installed."""
    try:
        # Optional, and slow to import.
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID
    except ImportError:
        raise InputError.one(
            "--tls", "needs the package cryptography; install it with `pip install cryptography`"
        ) from None
    now = datetime.datetime.now(datetime.UTC)
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "lamina apiserver")])
    server_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAMES[0])])

    def certificate(name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(authority_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - EARLIER)
            .not_valid_after(now + VALID)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
            )
        )

    usage = dict.fromkeys(
        (
            *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
            *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
        ),
        False,
    )
    authority = (
        certificate(authority_name, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**{**usage, "key_cert_sign": True, "crl_sign": True}), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    hosts = [x509.DNSName(name) for name in NAMES]
    addresses = [x509.IPAddress(ipaddress.ip_address(one)) for one in ADDRESSES]
    server = (
        certificate(server_name, server_key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**{**usage, "digital_signature": True}), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([*hosts, *addresses]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    key_bytes = server_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files = TlsFiles(folder / "ca.crt", folder / "tls.crt", folder / "tls.key")
    files.ca.write_bytes(authority.public_bytes(pem))
    files.cert.write_bytes(server.public_bytes(pem))
    files.key.touch(mode=0o600)
    files.key.write_bytes(key_bytes)
    return files
