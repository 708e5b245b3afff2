"""Protocol between the API client and its credentials."""

import ssl
from collections.abc import Mapping
from typing import Protocol


class RequestCredentials(Protocol):
    """The part of `lamina.clients.kube.access.ApiAccess` that the client needs."""

    @property
    def server(self) -> str:
        """Scheme, host, port and optional path prefix."""
        ...

    async def headers(self) -> dict[str, str]:
        """Return the headers that authenticate a request."""
        ...

    def tls(self) -> ssl.SSLContext | bool | None:
        """Return the TLS context, the same object until its files change; None for http."""
        ...

    def refused(self, used: Mapping[str, str] | None = None) -> None:
        """Drop the credential in the headers *used* after a 401."""
        ...
