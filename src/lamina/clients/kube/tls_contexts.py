"""
How we know the server, and how it knows our certificate: the TLS side of an access.

A context is built from a CA bundle and, where there is one, a client certificate. It is built anew when the files it
came from change (looked at every second) or when a plugin hands over another certificate; until then it is the
same object, so that connections can be kept by it.

Verification is Go's, which is what Kubernetes' own clients use: certificates in the bundle are trusted as they are,
self-signed or not, and small flaws that clusters live with (a missing key identifier) do not matter.
"""

import os
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from lamina.clients.kube.credentials import ClientCertificate
from lamina.clients.kube.file_backed_value import ByteSource, FileBackedValue
from lamina.model.errors import InputError

LOOK_SECONDS: Final = 1.0
"""How old a look at the files may be. It takes some 20 µs for each of them; building a context is what costs."""


class TlsSettings(msgspec.Struct, frozen=True):
    """What a configuration says about TLS."""

    authority: ByteSource = None
    """Whom to believe that it is the server; nothing: the authorities of the system."""
    certificate: ByteSource = None
    key: ByteSource = None
    insecure: bool = False
    """Believe anybody."""
    server_name: str = ""
    """The name that the server's certificate must have; nothing: that of the address."""
    place: str = ""
    """Where this stands, for messages."""

    def __repr__(self) -> str:
        return f"Trust({self.place!r})"

    def said(self, source: ByteSource, what: str) -> str:
        """Name a source in a message."""
        return f"{self.place}: {what}" if isinstance(source, bytes | None) else str(source)


class _Context(ssl.SSLContext):
    """A context that checks the server's certificate against a name of its own."""

    name = ""

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Begin a connection, as asyncio does."""
        return super().wrap_bio(incoming, outgoing, server_side, self.name or server_hostname, session)


class TlsContexts:
    """The context of an access, always up to date."""

    def __init__(self, trust: TlsSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """Build the first one. Raises InputError if a file cannot be used."""
        self._trust = trust
        sources = (trust.authority, trust.certificate, trust.key)
        self._own = FileBackedValue(sources, self._build, every=LOOK_SECONDS, clock=clock)
        self._plugged: tuple[bytes, ClientCertificate, ssl.SSLContext] | None = None

    @property
    def troubles(self) -> int:
        """How often files could not be used."""
        return self._own.troubles

    def look_again(self) -> None:
        """Do not wait with the next look at the files."""
        self._own.look_again()

    def current(self, pair: ClientCertificate | None = None) -> ssl.SSLContext:
        """Give the context with the certificate of the configuration or, if a plugin has brought one, with that."""
        authority, context = self._own.current()
        if pair is None:
            return context
        if self._plugged is None or self._plugged[:2] != (authority, pair):
            self._plugged = (authority, pair, build(self._trust, authority, pair))
        return self._plugged[2]

    def _build(self, contents: list[bytes]) -> tuple[bytes, ssl.SSLContext]:
        authority, certificate, key = contents
        pair = ClientCertificate(certificate, key) if certificate or key else None
        return authority, build(self._trust, authority, pair)


def build(trust: TlsSettings, authority: bytes, pair: ClientCertificate | None) -> ssl.SSLContext:
    """Make a context. Raises InputError if a certificate or key cannot be used."""
    context = _Context(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.name = trust.server_name
    if trust.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif trust.authority is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _believe(context, trust, authority)
    if pair is not None:
        _show(context, trust, pair)
    return context


def _believe(context: ssl.SSLContext, trust: TlsSettings, authority: bytes) -> None:
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    try:
        context.load_verify_locations(cadata=authority.decode("ascii"))
    except (ssl.SSLError, ValueError):
        where = trust.said(trust.authority, "certificate-authority-data")
        raise InputError.one(where, "holds no certificates that can be read: expected PEM") from None


def _show(context: ssl.SSLContext, trust: TlsSettings, pair: ClientCertificate) -> None:
    where = trust.said(trust.certificate, "client certificate")
    if not pair.certificate or not pair.key:
        raise InputError.one(where, "a client certificate and its key belong together: one of them is empty")

    def passphrase() -> bytes:
        raise InputError.one(where, "the key is encrypted, and there is nobody to ask: store it without a passphrase")

    try:
        with _as_file(pair.certificate.rstrip() + b"\n" + pair.key) as path:
            context.load_cert_chain(path, password=passphrase)
    except ssl.SSLError as error:
        reason = (error.reason or "not PEM").lower().replace("_", " ")
        message = f"the client certificate and its key cannot be used ({reason}); check that they belong together"
        raise InputError.one(where, message) from None


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """Show bytes to OpenSSL, which reads keys from files only. On Linux they never touch a disk."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):  # noqa: PTH112  no path of anybody's
        descriptor = os.memfd_create("client", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile() as file:  # readable to its owner only
            file.write(data)
            file.flush()
            yield file.name
