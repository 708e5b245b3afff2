"""
Sources of credentials for API requests: the `Authorization` header and, from a plugin, a client certificate.

    FixedCredential   a token, or a name and password, from the kubeconfig; empty for anonymous access
    TokenFile         a token in a file that is rotated, such as a pod's service account token
    ExecPlugin        a program that prints a credential (`lamina.clients.kube.exec_plugin`)

No secret is part of a message, a repr or a log line: errors name the field or file and never its value.
"""

import base64
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from lamina.clients.kube.errors import UnreachableError
from lamina.clients.kube.file_backed_value import FileBackedValue
from lamina.model.errors import InputError

TOKEN_LIMIT: Final = 64 * 1024
"""Bytes of the longest token. Real tokens have a few KiB; API servers accept 1 MiB of headers in all."""
TOKEN_SECONDS: Final = 1.0
"""Seconds between two reads of a token file. A read takes about 20 µs, so a new token is used within a second."""

_WRITABLE: Final = re.compile(r"[\x21-\x7e]+")


class NoCredentialError(UnreachableError):
    """There is no usable credential for a request; a retry later can succeed."""


class ClientCertificate(NamedTuple):
    """A client certificate and its key, in PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "ClientCertificate(...)"


class CredentialSource(Protocol):
    """Provides credentials for requests."""

    @property
    def troubles(self) -> int:
        """How often the credential was unavailable or unreadable, including times the last good one stayed in use."""
        ...

    async def authorization(self) -> str:
        """Return the header's value, or "" for none. Raises NoCredentialError if a credential is expected."""
        ...

    def pair(self) -> ClientCertificate | None:
        """Return the client certificate that came with the credential. Call it after `authorization`."""
        ...

    def refused(self, used: str | None) -> None:
        """Drop a credential that the server rejected with 401: *used*, or the current one if None."""
        ...


def checked_token(text: str, source: str) -> str:
    """Return a token without surrounding white space. Raises InputError that does not show the token."""
    token = text.strip()
    if not token:
        raise InputError.one(source, "contains no token: it is empty")
    if len(token) > TOKEN_LIMIT:
        raise InputError.one(source, f"the token is too long; at most {TOKEN_LIMIT // 1024} KiB are allowed")
    if not _WRITABLE.fullmatch(token):
        raise InputError.one(source, "the token has characters that a header cannot contain; write it on one line")
    return token


def bearer(token: str) -> str:
    """Return the header value for a token."""
    return f"Bearer {token}"


def basic(name: str, password: str) -> str:
    """Return the header value for a name and a password."""
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"


class FixedCredential:
    """A header value that never changes; empty for anonymous access."""

    troubles = 0

    def __init__(self, header: str = "") -> None:
        self._header = header

    async def authorization(self) -> str:
        """Return the header value."""
        return self._header

    def pair(self) -> ClientCertificate | None:
        """Return None: `TlsSettings` holds the certificate of the configuration."""
        return None

    def refused(self, used: str | None) -> None:
        """Do nothing: there is no other credential."""


class TokenFile:
    """The token in a file, read again every second and directly after a 401."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Read the token. Raises InputError if it is unusable."""

        def header(contents: list[bytes]) -> str:
            return bearer(checked_token(contents[0].decode("latin-1"), str(path)))

        self._file = FileBackedValue([path], header, every=TOKEN_SECONDS, clock=clock)

    @property
    def troubles(self) -> int:
        """How often the file was unusable."""
        return self._file.troubles

    async def authorization(self) -> str:
        """Return the header value for the current token."""
        return self._file.current()

    def pair(self) -> ClientCertificate | None:
        """Return None: a token file has no certificate."""
        return None

    def refused(self, used: str | None) -> None:
        """Read the file before the next request."""
        self._file.look_again()
