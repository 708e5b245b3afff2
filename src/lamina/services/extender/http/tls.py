"""
Certificates of the server, and who may call: read again while it runs.

The files are looked at every few seconds, by content, so that it does not matter how they were replaced. What is new is
loaded into a context of its own and used by connections that come from then on: a context that merely learned another
authority would still trust the one that was taken away. For the same reason a handshake that began with the old ones and
ends after that counts for nothing. Files that do not fit together, as in the middle of being replaced, leave everything as
it was; that is said once.
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
from lamina.services.extender.http.rejections import RequestRejection, bad_name, outdated
from lamina.services.extender.http.server_limits import ServerMetrics

LARGEST: Final = 1024**2
"""Bytes that are read of a file."""
KEPT: Final = "new certificates cannot be used, the old ones are kept"

log = logging.getLogger(__name__)

Contents = tuple[bytes, bytes, bytes]
T = TypeVar("T")


class ServerTlsSettings(msgspec.Struct, frozen=True):
    """Which files, and which callers."""

    cert: str
    """With everything up to the authority, in PEM; like the others, the path of a file."""
    key: str
    client_ca: str
    """The authorities whose certificates callers have to show."""
    client_names: tuple[str, ...] = ()
    """Common names or DNS names that callers may have; none: whoever has a certificate may call."""
    look_seconds: float = 5.0
    """How often the files are looked at."""


class ServerCertificates:
    """The context for connections that come now."""

    def __init__(self, tls: ServerTlsSettings, watch: ServerMetrics) -> None:
        """Read the files. Raises `InputError`."""
        self._tls, self._watch = tls, watch
        self._names = frozenset(tls.client_names)
        self._complaint = ""
        self._seen = _read(tls)
        self.context = _load(tls, self._seen)

    async def run(self, changed: Callable[[], None]) -> None:
        """Look at the files for ever; call *changed* whenever new ones were taken over."""
        while True:
            await asyncio.sleep(self._tls.look_seconds)
            try:
                found = await _aside(lambda: _fresh(self._tls, self._seen))
            except InputError as error:
                self._complain(str(error))
                continue
            self._complaint = ""
            if found is not None:
                self._seen, self.context = found
                log.info("new certificates are used", extra={"cert": self._tls.cert, "client_ca": self._tls.client_ca})
                self._watch.reload(ok=True)
                changed()

    def admit(self, transport: asyncio.BaseTransport) -> RequestRejection | None:
        """Say whether the one on the other side may call; that its certificate is good has been seen in the handshake."""
        if transport.get_extra_info("sslcontext") is not self.context:
            return outdated()
        names = _names(transport.get_extra_info("peercert"))
        if not self._names or not self._names.isdisjoint(names):
            return None
        return bad_name(names)

    def _complain(self, problem: str) -> None:
        if problem != self._complaint:
            log.warning(KEPT, extra={"problem": problem})
            self._watch.reload(ok=False)
        self._complaint = problem


async def _aside(work: Callable[[], T]) -> T:
    """
    Do *work* in a thread of its own: the files may lie on something slow, or on something that never answers.

    The threads of `asyncio.to_thread` are waited for when the process ends. This one is not.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # so that nobody can cancel it: who stops waiting does no more than that

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where it is waited for
            done.set_exception(error)
        else:
            done.set_result(result)

    Thread(target=run, name="certificates", daemon=True).start()
    return await asyncio.wrap_future(done)


def _fresh(tls: ServerTlsSettings, seen: Contents) -> tuple[Contents, ssl.SSLContext] | None:
    """Load what is new; None if nothing is, or if it changes at this moment."""
    found = _read(tls)
    if found == seen:
        return None
    context = _load(tls, found)
    # The certificate and its key are loaded by name; they have to be the ones that were compared.
    return (found, context) if _read(tls) == found else None


def _read(tls: ServerTlsSettings) -> Contents:
    return _content(tls.cert), _content(tls.key), _content(tls.client_ca)


def _content(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError.one(path, f"cannot be read: {error.strerror or type(error).__name__}") from None
    if len(content) > LARGEST:
        raise InputError.one(path, f"has more than {LARGEST} bytes, which is no certificate or key")
    return content


def _load(tls: ServerTlsSettings, contents: Contents) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    # As in Go: an authority that was named is trusted, also where it is not its own issuer.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    # Connections are few and kept: each shows its certificate, none begins where another one ended.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_verify_locations(cadata=contents[2].decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise InputError.one(tls.client_ca, "has no certificates in PEM") from None
    try:
        context.load_cert_chain(tls.cert, tls.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise InputError.one(tls.cert, f"does not fit {tls.key}: {_reason(error)}; both have to be PEM") from None
    return context


def _no_password() -> str:
    # Otherwise OpenSSL would ask the terminal.
    raise ValueError("the key is encrypted, and nobody is there to ask for the password")


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "no certificate or key in it").lower().replace("_", " ")
    return getattr(error, "strerror", None) or str(error)


def _names(certificate: object) -> list[str]:
    """List the common names and DNS names of a certificate, each once; addresses and others are no names."""
    if not isinstance(certificate, dict):
        return []
    common = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    others = [value for key, value in certificate.get("subjectAltName", ()) if key == "DNS"]
    return list(dict.fromkeys(common + others))
