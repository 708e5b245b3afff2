"""
A real registry that wants to be shown something, over what another one holds: pushed to there, guarded here.

    with GuardedRegistry(open_registry, auth={...}, tls={...}) as registry: ...
"""

import base64
import json
import socket
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from testbed import ports
from testbed.processes import Program
from testbed.registry_server import RegistryServer

HTPASSWD: Final = "ada:$2b$05$u4XrNHGbcadcyvJNVph64eFflLBeBGzOeKh04VOqBu.EniilQhHN.\n"
"""Ada and her password, as the registry stores it."""
LOGIN: Final = "ada:correct horse"
SERVICE: Final = "registry of the tests"
ISSUER: Final = "tests"


class GuardedRegistry(RegistryServer):
    """Serves what another registry holds."""

    def __init__(
        self, holder: RegistryServer, auth: Mapping[str, Any] | None = None, tls: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self._holder, self._auth, self._tls = holder, auth, tls

    def prepare(self) -> Program:
        """A registry on a port of its own."""
        port = ports.free()
        self.site.registry = f"{ports.LOOPBACK}:{port}"
        document = {
            "version": 0.1,
            "log": {"level": "warn"},
            "storage": {"filesystem": {"rootdirectory": str(self._holder.site.folder / "registry")}},
            "http": {"addr": self.site.registry, **({"tls": dict(self._tls)} if self._tls else {})},
            **({"auth": dict(self._auth)} if self._auth else {}),
        }
        path = self.site.folder / "registry.yaml"
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        words = [self.site.program_path("registry"), "serve", path]
        return self.site.program("registry", words, lambda: _listens(port), port, OTEL_TRACES_EXPORTER="none")


def _listens(port: int) -> bool:
    try:
        socket.create_connection((ports.LOOPBACK, port), 1).close()
    except OSError:
        return False
    return True


class TokenIssuer:
    """Signs tokens that a registry believes, with a certificate of its own."""

    def __init__(self, folder: Path) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, ISSUER)])
        now = datetime.now(UTC)
        self._certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._key.public_key())
            .serial_number(1)
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, SHA256())
        )
        self.bundle = folder / "issuer.pem"
        self.bundle.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def auth(self, realm: str) -> dict[str, Any]:
        """What the registry's configuration says about it."""
        return {"token": {"realm": realm, "service": SERVICE, "issuer": ISSUER, "rootcertbundle": str(self.bundle)}}

    def token(self, repository: str, actions: list[str], seconds: int = 300) -> str:
        """A token for some actions on one repository."""
        now = int(time.time())
        der = base64.b64encode(self._certificate.public_bytes(Encoding.DER)).decode()
        access = [{"type": "repository", "name": repository, "actions": actions}]
        claims = {
            "iss": ISSUER,
            "sub": "",
            "aud": SERVICE,
            "exp": now + seconds,
            "nbf": now - 10,
            "iat": now,
            "jti": "1",
        }
        head = {"typ": "JWT", "alg": "ES256", "x5c": [der]}
        signed = f"{_part(head)}.{_part({**claims, 'access': access})}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(SHA256())))
        return f"{signed}.{_encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _part(document: Mapping[str, Any]) -> str:
    return _encoded(json.dumps(document).encode())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
