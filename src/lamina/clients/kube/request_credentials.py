"""What requests and streams need to know of who we are."""

import ssl
from collections.abc import Mapping
from typing import Protocol


class RequestCredentials(Protocol):
    """What the client needs of `lamina.clients.kube.access.ApiAccess`."""

    @property
    def server(self) -> str:
        """Scheme, host, port and perhaps a path in front of all others."""
        ...

    async def headers(self) -> dict[str, str]:
        """Headers that say who we are."""
        ...

    def tls(self) -> ssl.SSLContext | bool | None:
        """The context for new connections: the same object until the files behind it change; None for http."""
        ...

    def refused(self, used: Mapping[str, str] | None = None) -> None:
        """The headers *used* were answered by 401; they must not be handed out again."""
        ...
