"""
A certificate authority for one testbed: certificates for the server and for any user.

Kubernetes reads the user from a client certificate's common name, and the groups from its organisations. All keys are
deleted with the testbed and protect nothing of value.
"""

import base64
import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from testbed.ports import LOOPBACK

LIFE: Final = datetime.timedelta(days=30)
# A clock that was set back a little must not make certificates invalid.
SLACK: Final = datetime.timedelta(hours=1)

SERVER_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


class Authority:
    """Signs certificates, and keeps its own in a folder for clients. Reuses the authority that a folder already has."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.ca_file = folder / "ca.crt"
        key_file = folder / "ca.key"
        if key_file.exists():
            key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
            assert isinstance(key, ec.EllipticCurvePrivateKey)
            self._key, self._name = key, x509.load_pem_x509_certificate(self.ca_file.read_bytes()).subject
            return
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "testbed")])
        write(self.ca_file, pem(self._own()))
        write(key_file, private_pem(self._key))

    def server(self) -> tuple[Path, Path]:
        """Return certificate and key for a server on the loopback interface."""
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in SERVER_NAMES]
        names.append(x509.IPAddress(ipaddress.ip_address(LOOPBACK)))
        certificate, key = self._sign(
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")]),
            ExtendedKeyUsageOID.SERVER_AUTH,
            x509.SubjectAlternativeName(names),
        )
        paths = self.folder / "server.crt", self.folder / "server.key"
        write(paths[0], certificate)
        write(paths[1], key)
        return paths

    def client(self, user: str, groups: Sequence[str] = ()) -> tuple[bytes, bytes]:
        """Return certificate and key, as PEM, of a user with its groups."""
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        return self._sign(x509.Name(attributes), ExtendedKeyUsageOID.CLIENT_AUTH)

    def service_account_key(self) -> Path:
        """Return the key that signs the tokens of service accounts."""
        path = self.folder / "service-accounts.key"
        if not path.exists():
            write(path, private_pem(ec.generate_private_key(ec.SECP256R1())))
        return path

    def kubeconfig(self, path: Path, server: str, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig for *user* that needs no other file."""
        certificate, key = self.client(user, groups)
        cluster = {"server": server, "certificate-authority-data": text(self.ca_file.read_bytes())}
        identity = {"client-certificate-data": text(certificate), "client-key-data": text(key)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "testbed", "cluster": cluster}],
            "users": [{"name": user, "user": identity}],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": user}}],
            "current-context": "testbed",
        }
        write(path, yaml.safe_dump(document, sort_keys=False).encode())
        return path

    def _own(self) -> x509.Certificate:
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        key = self._key.public_key()
        return (
            self._begin(self._name, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _sign(self, name: x509.Name, usage: x509.ObjectIdentifier, *further: x509.ExtensionType) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = self._begin(name, key.public_key())
        for extension in (x509.ExtendedKeyUsage([usage]), issuer, *further):
            builder = builder.add_extension(extension, critical=False)
        return pem(builder.sign(self._key, hashes.SHA256())), private_pem(key)

    def _begin(self, name: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - SLACK)
            .not_valid_after(now + LIFE)
        )


def pem(certificate: x509.Certificate) -> bytes:
    """Return a certificate as PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a key as PEM, in the form that Kubernetes also reads for service accounts."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def text(data: bytes) -> str:
    """Return *data* in base64, as a kubeconfig embeds certificates."""
    return base64.b64encode(data).decode()


def write(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123 - with a mode
        file.write(data)
