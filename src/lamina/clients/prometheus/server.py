"""
Address and credentials of a Prometheus server: URL, token or password file, CA file.

Files are read again before every request, because Kubernetes rotates them; there are only a few requests a minute. When
a file is unreadable for a moment, the last good content stays in use. Only the first read raises. No secret is part of
a message or a repr.
"""

import base64
import re
import ssl
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from lamina.clients.bounded_files import read_file
from lamina.model.errors import InputError

TOKEN_LIMIT: Final = 64 * 1024
LONGEST_URL: Final = 2048
API: Final = "/api/v1"

_WRITABLE: Final = re.compile(r"[\x21-\x7e]+")
_PLAIN: Final = re.compile(r"[\x21-\x7e]*")


class PrometheusServer(msgspec.Struct, frozen=True, kw_only=True):
    """A Prometheus server, or one with the same HTTP API."""

    url: str
    """For example ``http://prometheus.monitoring:9090``, without ``/api/v1``."""
    token_file: Path | None = None
    """Contains a bearer token."""
    user: str = ""
    """For basic authentication, together with *password_file*."""
    password_file: Path | None = None
    ca_file: Path | None = None
    """CA bundle to verify the server with; None uses the system's."""


def checked_url(url: str) -> str:
    """Return the server's URL without a trailing slash. Raises ValueError with a message for the user."""
    if len(url) > LONGEST_URL or not _PLAIN.fullmatch(url):
        raise ValueError("is not a usable URL; write it as http://prometheus.monitoring:9090")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("is not a usable URL: host or port is not valid") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError("is not a usable URL; write it as http://prometheus.monitoring:9090")
    if parts.username is not None or parts.password is not None:
        raise ValueError("contains a password; name the user and a file with the password instead")
    if parts.query or parts.fragment:
        raise ValueError("contains a query: end it before the question mark")
    path = parts.path.rstrip("/")
    if path.endswith(API):
        raise ValueError(f"ends in {API}; remove that, it is added")
    return f"{parts.scheme}://{parts.netloc}{path}"


class PrometheusLogin:
    """Authorization header and TLS context, from the newest readable files."""

    def __init__(self, server: PrometheusServer) -> None:
        """Read all files for the first time. Raises InputError."""
        self.url = _url(server)
        if server.token_file is not None and (server.user or server.password_file is not None):
            raise InputError.one("Prometheus", "both a token and a password are configured; choose one")
        if bool(server.user) != (server.password_file is not None):
            raise InputError.one("Prometheus", "a user and a password file are needed together; name both")
        if server.ca_file is not None and self.url.startswith("http:"):
            raise InputError.one(str(server.ca_file), "a CA file has no use without TLS; write https, or remove it")
        self._server = server
        self.troubles = 0
        """How often a file was unreadable and its last good content stayed in use."""
        self._authorities: bytes | None = None
        self._tls: ssl.SSLContext | bool = True
        self._headers: dict[str, str] = {}
        self._read()

    def __repr__(self) -> str:
        return f"PrometheusLogin({self.url!r})"

    @property
    def host(self) -> str:
        """Host and port of the server, for messages."""
        return urlsplit(self.url).netloc

    def current(self) -> tuple[dict[str, str], ssl.SSLContext | bool]:
        """Return the headers and the TLS context (True: system defaults); the context changes only with the CA file."""
        try:
            self._read()
        except InputError:
            self.troubles += 1
        return self._headers, self._tls

    def _read(self) -> None:
        server = self._server
        if server.token_file is not None:
            token = _secret(server.token_file, "token")
            self._headers = {"Authorization": f"Bearer {token}"}
        elif server.password_file is not None:
            pair = f"{server.user}:{_secret(server.password_file, 'password', _ANY)}"
            self._headers = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        if server.ca_file is not None:
            found = read_file(server.ca_file)
            if found != self._authorities:
                self._tls = _trusting(server.ca_file, found)
                self._authorities = found


_ANY: Final = re.compile(r"[^\r\n\0]+")


def _url(server: PrometheusServer) -> str:
    try:
        return checked_url(server.url)
    except ValueError as error:
        raise InputError.one("Prometheus address", str(error)) from None


def _secret(path: Path, what: str, shape: re.Pattern[str] = _WRITABLE) -> str:
    try:
        text = read_file(path, TOKEN_LIMIT).decode().strip()
    except ValueError:
        raise InputError.one(str(path), f"the {what} is not text") from None
    if not shape.fullmatch(text):
        raise InputError.one(str(path), f"expected one line with a {what}: it is empty or has several lines")
    return text


def _trusting(path: Path, authorities: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # As in Go programs, Prometheus among them: every certificate in the file is a trust anchor.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    try:
        # Certificates are ASCII; comments between them need not be.
        context.load_verify_locations(cadata=authorities.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError):
        raise InputError.one(str(path), "contains no readable certificates: expected PEM") from None
    return context
