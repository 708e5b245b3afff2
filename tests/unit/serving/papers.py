"""Certificates for a server and for who calls it, in files that can be replaced."""

import asyncio
import ssl
from pathlib import Path

import trustme

from lamina.serving.tls import ServerTlsSettings
from tests.unit.serving.visiting import get

LOOKS = 0.02
"""Seconds between two looks at the files."""
OURS = trustme.CA(key_type=trustme.KeyType.ECDSA)
THEIRS = trustme.CA(key_type=trustme.KeyType.ECDSA)
SCHEDULER = OURS.issue_cert("scheduler.kube-system", common_name="system:kube-scheduler")


class Files:
    """What a server is given, and may be given again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cert, self.key, self.ca = folder / "tls.crt", folder / "tls.key", folder / "ca.crt"
        self.serve_as(OURS)
        self.trust(OURS)

    def serve_as(self, authority: trustme.CA, key: bytes | None = None) -> trustme.LeafCert:
        cert = authority.issue_cert("127.0.0.1")
        replace(self.key, key or cert.private_key_pem.bytes())
        replace(self.cert, b"".join(blob.bytes() for blob in cert.cert_chain_pems))
        return cert

    def trust(self, *authorities: trustme.CA) -> None:
        replace(self.ca, b"".join(authority.cert_pem.bytes() for authority in authorities))

    def tls(self, *names: str) -> ServerTlsSettings:
        return ServerTlsSettings(str(self.cert), str(self.key), str(self.ca), names, look_seconds=LOOKS)


def replace(path: Path, content: bytes) -> None:
    beside = path.with_name("new")
    beside.write_bytes(content)
    beside.rename(path)


def context(cert: trustme.LeafCert | None = SCHEDULER, server: trustme.CA = OURS) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.configure_trust(made)
    if cert is not None:
        cert.configure_cert(made)
    return made


async def turned_away(server, made: ssl.SSLContext) -> bool:
    """Whether a caller gets no answer; in TLS 1.3 it learns that only after its own side of the handshake."""
    try:
        async with server.call(made) as caller:
            await caller.ask(get())
    except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
        return True
    return False
