"""
Limits of the HTTP server, and the interface of its metrics.

A test verifies every limit. They are chosen for kube-scheduler as the client: it keeps a handful of connections, sends
one request after another, and sends 25 KB for 500 node names or 56 MB for 5,000 whole nodes.
"""

import ipaddress
from typing import Protocol

import msgspec


class ServerLimits(msgspec.Struct, frozen=True):
    """Limits of one server; sizes in bytes."""

    header: int = 8 * 1024
    """Of a request head, including its first line."""
    small_body: int = 4 * 1024**2
    """A longer body needs a slot for large requests."""
    large_body: int = 96 * 1024**2
    large_at_once: int = 2
    """Slots for large requests. A slot is held until the response is written, because the response may be as large."""
    connections: int = 64
    newcomers_first: bool = False
    """Whether a connection beyond the limit replaces the one that was idle for longest; otherwise it is rejected."""
    read_seconds: float = 10.0
    """
    From the first byte of a request to its last. Also the limit of a TLS handshake, of the wait for the first request,
    and of the wait for a large request slot.
    """
    idle_seconds: float = 120.0
    """From a response to the next request."""
    write_seconds: float = 10.0
    """From the first byte of a response to its last; for a stream, from its end on."""
    handler_seconds: float = 60.0
    """Until the response of an awaited handler; then the handler is cancelled and the client gets 504."""
    stream_unsent: int = 16 * 1024**2
    """Bytes that a stream holds for a client that does not read; beyond that, the client is cut off."""


class ServerMetrics(Protocol):
    """Receives the events of the server. Called from the event loop: must be quick and must not raise."""

    def served(self, path: str, status: int, seconds: float, bytes_in: int, bytes_out: int) -> None:
        """
        Record a response; if the client has disconnected, `abandoned` is called as well.

        *path* is the label of the request; clients cannot create labels. *seconds* is the time from the last byte of
        the request to the first byte of the response. The byte counts are those of the bodies; 0 for a stream.
        """

    def abandoned(self, path: str) -> None:
        """Record a client that disconnected before its response was written."""

    def refused(self, why: str) -> None:
        """Record a rejected request or connection; *why* is one of `rejections.REASONS`."""

    def connections(self, count: int) -> None:
        """Record the current number of connections."""

    def reload(self, ok: bool) -> None:
        """Record that changed certificates were loaded, or were rejected and the old ones are kept."""


class NoServerMetrics:
    """Metrics that record nothing."""

    def served(self, path: str, status: int, seconds: float, bytes_in: int, bytes_out: int) -> None:
        """Ignore a response."""

    def abandoned(self, path: str) -> None:
        """Ignore a client that disconnected."""

    def refused(self, why: str) -> None:
        """Ignore a rejection."""

    def connections(self, count: int) -> None:
        """Ignore the number of connections."""

    def reload(self, ok: bool) -> None:
        """Ignore a reload of certificates."""


def is_loopback(host: str) -> bool:
    """Return whether *host* can be reached from this machine only: "localhost" or a loopback address, no other name."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
