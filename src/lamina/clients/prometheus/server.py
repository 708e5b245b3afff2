"""
Which server is asked, and who we are to it: an address, and files with a token, a password, authorities.

Files are read again before every request, because a cluster replaces them; there are a few requests a minute. A file
that cannot be used for a moment leaves what was read before in use. Only the first reading raises. No secret is ever part
of a message or a repr.
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
    """A Prometheus server, or whatever answers like one."""

    url: str
    """Where it is, as ``http://prometheus.monitoring:9090``; what its API's paths begin with is left off."""
    token_file: Path | None = None
    """Holds a bearer token."""
    user: str = ""
    """With *password_file*: basic authentication."""
    password_file: Path | None = None
    ca_file: Path | None = None
    """Whom to believe that it is the server; None: the authorities of the system."""


def checked_url(url: str) -> str:
    """Take the address of a server, without a slash at its end. Raises ValueError in words for whoever wrote it."""
    if len(url) > LONGEST_URL or not _PLAIN.fullmatch(url):
        raise ValueError("is no address; write it as http://prometheus.monitoring:9090")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("is no address: host or port make no sense") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError("is no address; write it as http://prometheus.monitoring:9090")
    if parts.username is not None or parts.password is not None:
        raise ValueError("has a password in it; name the user and a file with the password instead")
    if parts.query or parts.fragment:
        raise ValueError("has a query in it: end it before the question mark")
    path = parts.path.rstrip("/")
    if path.endswith(API):
        raise ValueError(f"ends in {API}; leave that off, it is added")
    return f"{parts.scheme}://{parts.netloc}{path}"


class PrometheusLogin:
    """What to show with a request, always from the newest files that could be used."""

    def __init__(self, server: PrometheusServer) -> None:
        """Read everything for the first time. Raises InputError."""
        self.url = _url(server)
        if server.token_file is not None and (server.user or server.password_file is not None):
            raise InputError.one("Prometheus", "a token and a password are two ways to say who we are; choose one")
        if bool(server.user) != (server.password_file is not None):
            raise InputError.one("Prometheus", "a user and a file with the password belong together; name both")
        if server.ca_file is not None and self.url.startswith("http:"):
            raise InputError.one(str(server.ca_file), "there is nothing to verify without TLS; write https, or drop it")
        self._server = server
        self.troubles = 0
        """How often a file could not be used, and what was read before stayed in use."""
        self._authorities: bytes | None = None
        self._tls: ssl.SSLContext | bool = True
        self._headers: dict[str, str] = {}
        self._read()

    def __repr__(self) -> str:
        return f"Login({self.url!r})"

    @property
    def host(self) -> str:
        """How the server is called in messages."""
        return urlsplit(self.url).netloc

    def current(self) -> tuple[dict[str, str], ssl.SSLContext | bool]:
        """Give the headers that say who we are, and the TLS side (True: as usual); the same object while nothing changed."""
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
        raise InputError.one("the address of Prometheus", str(error)) from None


def _secret(path: Path, what: str, shape: re.Pattern[str] = _WRITABLE) -> str:
    try:
        text = read_file(path, TOKEN_LIMIT).decode().strip()
    except ValueError:
        raise InputError.one(str(path), f"the {what} is not text") from None
    if not shape.fullmatch(text):
        raise InputError.one(str(path), f"holds no {what}, or one of several lines; write it on one line")
    return text


def _trusting(path: Path, authorities: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # As Go's programs do, Prometheus among them: what is in the file is trusted as it is.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    try:
        # Certificates are ASCII; what people write between them is not, and does not matter.
        context.load_verify_locations(cadata=authorities.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError):
        raise InputError.one(str(path), "holds no certificates that can be read: expected PEM") from None
    return context
