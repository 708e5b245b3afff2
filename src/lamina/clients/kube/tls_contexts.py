"""
TLS contexts for API access: verification of the server, and the client certificate.

A context is built from a CA bundle and an optional client certificate. It is rebuilt when its files change (checked
every second) or when a plugin returns another certificate. Until then it is the same object, because connections are
pooled by it.

Verification is Go's, as in Kubernetes' own clients. Every certificate in the bundle is a trust anchor, self-signed or
not. Minor flaws that are common in clusters (a missing key identifier) are accepted.
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
"""Seconds between two checks of the files. A check takes about 20 µs for each; building a context takes longer."""


class TlsSettings(msgspec.Struct, frozen=True):
    """TLS settings of a configuration."""

    authority: ByteSource = None
    """CA bundle to verify the server with; None uses the system's."""
    certificate: ByteSource = None
    key: ByteSource = None
    insecure: bool = False
    """Skip verification of the server."""
    server_name: str = ""
    """Expected name in the server's certificate; empty uses the host of the address."""
    place: str = ""
    """Location of the settings, for messages."""

    def __repr__(self) -> str:
        return f"TlsSettings({self.place!r})"

    def source_name(self, source: ByteSource, what: str) -> str:
        """Return how messages name a source: its file, or its field in the configuration."""
        return f"{self.place}: {what}" if isinstance(source, bytes | None) else str(source)


class _Context(ssl.SSLContext):
    """A context that verifies the server's certificate against a configured name."""

    name = ""

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Start a connection; asyncio calls this."""
        return super().wrap_bio(incoming, outgoing, server_side, self.name or server_hostname, session)


class TlsContexts:
    """The current TLS context of an access."""

    def __init__(self, settings: TlsSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """Build the first context. Raises InputError if a file is unusable."""
        self._settings = settings
        sources = (settings.authority, settings.certificate, settings.key)
        self._own = FileBackedValue(sources, self._build, every=LOOK_SECONDS, clock=clock)
        self._from_plugin: tuple[bytes, ClientCertificate, ssl.SSLContext] | None = None

    @property
    def troubles(self) -> int:
        """How often the files were unusable."""
        return self._own.troubles

    def look_again(self) -> None:
        """Check the files at the next call of `current`."""
        self._own.look_again()

    def current(self, pair: ClientCertificate | None = None) -> ssl.SSLContext:
        """Return the context with *pair*, the plugin's certificate, or with the configured one if None."""
        authority, context = self._own.current()
        if pair is None:
            return context
        if self._from_plugin is None or self._from_plugin[:2] != (authority, pair):
            self._from_plugin = (authority, pair, build(self._settings, authority, pair))
        return self._from_plugin[2]

    def _build(self, contents: list[bytes]) -> tuple[bytes, ssl.SSLContext]:
        authority, certificate, key = contents
        pair = ClientCertificate(certificate, key) if certificate or key else None
        return authority, build(self._settings, authority, pair)


def build(settings: TlsSettings, authority: bytes, pair: ClientCertificate | None) -> ssl.SSLContext:
    """Build a context. Raises InputError if a certificate or key is unusable."""
    context = _Context(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.name = settings.server_name
    if settings.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif settings.authority is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _load_authority(context, settings, authority)
    if pair is not None:
        _load_client_certificate(context, settings, pair)
    return context


def _load_authority(context: ssl.SSLContext, settings: TlsSettings, authority: bytes) -> None:
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    try:
        context.load_verify_locations(cadata=authority.decode("ascii"))
    except (ssl.SSLError, ValueError):
        where = settings.source_name(settings.authority, "certificate-authority-data")
        raise InputError.one(where, "contains no readable certificates: expected PEM") from None


def _load_client_certificate(context: ssl.SSLContext, settings: TlsSettings, pair: ClientCertificate) -> None:
    where = settings.source_name(settings.certificate, "client certificate")
    if not pair.certificate or not pair.key:
        raise InputError.one(where, "a client certificate and its key are needed together: one of them is empty")

    def passphrase() -> bytes:
        raise InputError.one(where, "the key is encrypted and no prompt is possible: store it without a passphrase")

    try:
        with _as_file(pair.certificate.rstrip() + b"\n" + pair.key) as path:
            context.load_cert_chain(path, password=passphrase)
    except ssl.SSLError as error:
        reason = (error.reason or "not PEM").lower().replace("_", " ")
        message = f"the client certificate and its key are unusable ({reason}); check that they belong together"
        raise InputError.one(where, message) from None


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """Pass bytes to OpenSSL as a file path, because it reads keys only from files. On Linux they stay in memory."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):  # noqa: PTH112  no user's path
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
