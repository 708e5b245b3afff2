"""gRPC channel to a runtime's Unix socket, with the limits that all clients share."""

from pathlib import Path
from typing import Final, Protocol

import grpc
import grpc.aio

DEADLINE: Final = 10.0
"""Seconds for one call, and for connecting."""
MESSAGE_LIMIT: Final = 16 * 1024 * 1024
ASKED_PER_SECOND: Final = 1.0
READ_PER_SECOND: Final = 200.0
"""Calls a second for immutable documents, each read once."""

OPTIONS: Final = (
    # Some servers reject the socket path as a host name.
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", MESSAGE_LIMIT),
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    # A restarted runtime is back within a second; the caller decides how often to retry.
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # Despite its name, this is the time limit of one connect attempt: a runtime on a busy node accepts slowly.
    ("grpc.min_reconnect_backoff_ms", int(DEADLINE * 1000)),
)


class ProtoMessage(Protocol):
    """A protobuf request."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """Return the message as bytes."""


def open_channel(socket: Path) -> grpc.aio.Channel:
    """Return a channel to a Unix socket; it connects on the first call."""
    return grpc.aio.insecure_channel(f"unix:{socket}", options=OPTIONS)
