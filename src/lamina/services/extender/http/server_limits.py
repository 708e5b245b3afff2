"""
How much the server takes from whom, and what it tells about it.

Every number is a promise with a test. They are chosen for kube-scheduler as the caller: it keeps a handful of
connections, asks one thing after another, and sends 25 KB for 500 node names or 56 MB for 5,000 whole nodes.
"""

import ipaddress
from typing import Protocol

import msgspec


class ServerLimits(msgspec.Struct, frozen=True):
    """What one server takes at most; sizes in bytes."""

    header: int = 8 * 1024
    """Of a request, its first line included."""
    small_body: int = 4 * 1024**2
    """Up to here a body is simply read; what is longer needs one of the large places."""
    large_body: int = 96 * 1024**2
    large_at_once: int = 2
    """Places for large bodies. A place is held until the answer is written, because the answer may be as large."""
    connections: int = 64
    newcomers_first: bool = False
    """Who comes when all places are taken gets that of whoever has been idle for longest; otherwise it is turned away."""
    read_seconds: float = 10.0
    """From the first byte of a request to its last; also for a TLS handshake, to begin a first request, and to wait for a large place."""
    idle_seconds: float = 120.0
    """From an answer to the next request."""
    write_seconds: float = 10.0
    """From the first byte of an answer to its last."""


class ServerMetrics(Protocol):
    """Whom the server tells what happens; called from the event loop, has to be quick and never raises."""

    def served(self, path: str, status: int, seconds: float, bytes_in: int, bytes_out: int) -> None:
        """
        Take note of an answer that was made; if nobody is there to read it, `abandoned` is told as well.

        *path* is a route, or `asking.OTHER` where there is none: callers cannot invent names for a metric. *seconds* count from
        the last byte of the request to the answer's first; the bytes are those of the bodies.
        """

    def abandoned(self, path: str) -> None:
        """Take note of a caller that was gone before its answer was written."""

    def refused(self, why: str) -> None:
        """Take note of a request or connection that was turned away; *why* is one of `refusals.REASONS`."""

    def connections(self, count: int) -> None:
        """Take note of how many connections there are now."""

    def reload(self, ok: bool) -> None:
        """Take note of new certificates that were taken over, or could not be and the old ones are kept."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach who listens on *host*: "localhost" or a loopback address, no other name."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
