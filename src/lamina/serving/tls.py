"""
TLS certificates of the server and accepted clients, reloaded while the server runs.

The server compares the contents of the files every few seconds, so it does not matter how they were replaced. New files
get a new TLS context for new connections: an old context that learns another authority would still trust the removed
one. For the same reason, a handshake that began with the old context is rejected when it ends. Files that do not fit
together, as during a replacement, change nothing; that is logged once.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Final, TypeVar

import msgspec

from lamina.model.errors import InputError
from lamina.serving.rejections import RequestRejection, bad_name, outdated
from lamina.serving.server_limits import ServerMetrics

LARGEST: Final = 1024**2
"""Most bytes of a file."""
KEPT: Final = "certificate reload failed, keeping the old certificates"

log = logging.getLogger(__name__)

Contents = tuple[bytes, bytes, bytes]
T = TypeVar("T")


class ServerTlsSettings(msgspec.Struct, frozen=True):
    """Certificate files, and accepted clients."""

    cert: str
    """Path of a PEM file with the whole chain."""
    key: str
    client_ca: str = ""
    """Path of a PEM file with the authorities that sign client certificates; empty: clients show no certificate."""
    client_names: tuple[str, ...] = ()
    """Accepted common names or DNS names of clients; empty: every client with a certificate is accepted."""
    look_seconds: float = 5.0
    """Seconds between two checks of the files."""


class ServerCertificates:
    """The TLS context for new connections."""

    def __init__(self, tls: ServerTlsSettings, metrics: ServerMetrics) -> None:
        """Read the files. Raises `InputError`."""
        self._tls, self._metrics = tls, metrics
        self._names = frozenset(tls.client_names)
        self._complaint = ""
        self._seen = _read(tls)
        self.context = _load(tls, self._seen)

    async def run(self, changed: Callable[[], None]) -> None:
        """Check the files until cancelled; call *changed* after each reload."""
        while True:
            await asyncio.sleep(self._tls.look_seconds)
            try:
                found = await _in_thread(lambda: _load_changed(self._tls, self._seen))
            except InputError as error:
                self._complain(str(error))
                continue
            self._complaint = ""
            if found is not None:
                self._seen, self.context = found
                log.info("certificates reloaded", extra={"cert": self._tls.cert, "client_ca": self._tls.client_ca})
                self._metrics.reload(ok=True)
                changed()

    def admit(self, transport: asyncio.BaseTransport) -> RequestRejection | None:
        """Return why a client is rejected, or None. The handshake has verified its certificate already."""
        if transport.get_extra_info("sslcontext") is not self.context:
            return outdated()
        names = _names(transport.get_extra_info("peercert"))
        if not self._names or not self._names.isdisjoint(names):
            return None
        return bad_name(names)

    def _complain(self, problem: str) -> None:
        if problem != self._complaint:
            log.warning(KEPT, extra={"problem": problem})
            self._metrics.reload(ok=False)
        self._complaint = problem


async def _in_thread(work: Callable[[], T]) -> T:
    """
    Run *work* in a thread of its own, because the files may be on a slow or dead file system.

    The process waits for threads of `asyncio.to_thread` at its end, but not for this one.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # a cancelled waiter must not cancel the work

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - raised again in the waiting task
            done.set_exception(error)
        else:
            done.set_result(result)

    Thread(target=run, name="certificates", daemon=True).start()
    return await asyncio.wrap_future(done)


def _load_changed(tls: ServerTlsSettings, seen: Contents) -> tuple[Contents, ssl.SSLContext] | None:
    """Load changed files; None if they are unchanged, or change at this moment."""
    found = _read(tls)
    if found == seen:
        return None
    context = _load(tls, found)
    # OpenSSL loads certificate and key by path, so they must still be the files that were compared.
    return (found, context) if _read(tls) == found else None


def _read(tls: ServerTlsSettings) -> Contents:
    return _content(tls.cert), _content(tls.key), _content(tls.client_ca) if tls.client_ca else b""


def _content(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError.one(path, f"cannot be read: {error.strerror or type(error).__name__}") from None
    if len(content) > LARGEST:
        raise InputError.one(path, f"has more than {LARGEST} bytes, too many for a certificate or key")
    return content


def _load(tls: ServerTlsSettings, contents: Contents) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED if tls.client_ca else ssl.CERT_NONE
    # As in Go: a configured authority is trusted, even if it is not self-signed.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    # Connections are few and long: every one shows its certificate, and no session is resumed.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    if tls.client_ca:
        try:
            context.load_verify_locations(cadata=contents[2].decode("ascii"))
        except (ssl.SSLError, ValueError):
            raise InputError.one(tls.client_ca, "has no PEM certificates") from None
    try:
        context.load_cert_chain(tls.cert, tls.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise InputError.one(tls.cert, f"does not match {tls.key}: {_reason(error)}; both must be PEM") from None
    return context


def _no_password() -> str:
    # Otherwise OpenSSL would prompt on the terminal.
    raise ValueError("the key is encrypted; use a key without a password")


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "no certificate or key in it").lower().replace("_", " ")
    return getattr(error, "strerror", None) or str(error)


def _names(certificate: object) -> list[str]:
    """Return the common names and DNS names of a certificate, each once."""
    if not isinstance(certificate, dict):
        return []
    common = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    others = [value for key, value in certificate.get("subjectAltName", ()) if key == "DNS"]
    return list(dict.fromkeys(common + others))
