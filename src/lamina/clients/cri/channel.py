"""How a runtime's socket is opened, whichever protocol is spoken over it."""

from pathlib import Path
from typing import Final, Protocol

import grpc
import grpc.aio

DEADLINE: Final = 10.0
"""Seconds for one question, and for a connection to stand."""
MESSAGE_LIMIT: Final = 16 * 1024 * 1024
ASKED_PER_SECOND: Final = 1.0
READ_PER_SECOND: Final = 200.0
"""Of documents that never change, each once."""

OPTIONS: Final = (
    # Some servers object to the path of a socket as a host name.
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", MESSAGE_LIMIT),
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    # A runtime that is restarted is back in a second; who asks decides how often to try.
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # How long one attempt may take, whatever its name says: a runtime on a busy node is slow to pick up.
    ("grpc.min_reconnect_backoff_ms", int(DEADLINE * 1000)),
)


class ProtoMessage(Protocol):
    """What a request is."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """As bytes."""


def open_channel(socket: Path) -> grpc.aio.Channel:
    """Open a connection; it is made when the first question is asked."""
    return grpc.aio.insecure_channel(f"unix:{socket}", options=OPTIONS)
