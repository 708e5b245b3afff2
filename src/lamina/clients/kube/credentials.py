"""
Who we are to the API server: the `Authorization` header of each request, from whatever the configuration names.

    Fixed         a token or a name and password that stand in the kubeconfig, or nobody
    TokenFile     a token in a file that is replaced now and then, as a pod's own is
    (Plugin)      a program that prints one, in `lamina.clients.kube.exec_plugin`

No secret is ever part of a message, a repr or a log line: mistakes name the place and never the value.
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
"""The longest token used; an API server takes headers of up to 1 MiB in all, and real tokens have a few KiB."""
TOKEN_SECONDS: Final = 1.0
"""How old a look at a token file may be. Reading one takes some 20 µs, so that a new token is used almost at once."""

_WRITABLE: Final = re.compile(r"[\x21-\x7e]+")


class NoCredentialError(UnreachableError):
    """The server cannot be asked, because there is nothing to show it; trying again later may help."""


class ClientCertificate(NamedTuple):
    """A client certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Pair(...)"


class CredentialSource(Protocol):
    """Where credentials come from."""

    @property
    def troubles(self) -> int:
        """How often it could not be had or read, and the last good one stayed in use if there was one."""
        ...

    async def authorization(self) -> str:
        """Give the value of the header, or nothing. Raises NoCredentialError if there should be one and is none."""
        ...

    def pair(self) -> ClientCertificate | None:
        """Give the client certificate that came with it. Called after `authorization`."""
        ...

    def refused(self, used: str | None) -> None:
        """Hear that the server answered 401 to *used*, or to whatever is in use."""
        ...


def checked_token(text: str, source: str) -> str:
    """Take a token that can stand in a header; what surrounds it is dropped. Raises InputError without showing it."""
    token = text.strip()
    if not token:
        raise InputError.one(source, "holds no token: it is empty")
    if len(token) > TOKEN_LIMIT:
        raise InputError.one(source, f"the token is too long; at most {TOKEN_LIMIT // 1024} KiB are used")
    if not _WRITABLE.fullmatch(token):
        raise InputError.one(source, "the token has characters that cannot stand in a header; write it on one line")
    return token


def bearer(token: str) -> str:
    """Write a token as a header."""
    return f"Bearer {token}"


def basic(name: str, password: str) -> str:
    """Write a name and a password as a header."""
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"


class FixedCredential:
    """A header that never changes; an empty one is none."""

    troubles = 0

    def __init__(self, header: str = "") -> None:
        self._header = header

    async def authorization(self) -> str:
        """Give it."""
        return self._header

    def pair(self) -> ClientCertificate | None:
        """Give none: a certificate of the configuration belongs to `trust`."""
        return None

    def refused(self, used: str | None) -> None:
        """There is no other."""


class TokenFile:
    """The token in a file, read again every second and at once after a 401."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Read it. Raises InputError if it cannot be used."""

        def header(contents: list[bytes]) -> str:
            return bearer(checked_token(contents[0].decode("latin-1"), str(path)))

        self._file = FileBackedValue([path], header, every=TOKEN_SECONDS, clock=clock)

    @property
    def troubles(self) -> int:
        """How often the file could not be used."""
        return self._file.troubles

    async def authorization(self) -> str:
        """Give the token of the file."""
        return self._file.current()

    def pair(self) -> ClientCertificate | None:
        """Give none: a file with a token has no certificate."""
        return None

    def refused(self, used: str | None) -> None:
        """Read the file before the next request."""
        self._file.look_again()
