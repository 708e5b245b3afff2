"""
States of a connection, and how long each may last.

    idle --> reading --+--> answering ----------------> idle
              |   ^ |  +--> awaiting --> answering      (the handler returned an awaitable)
              v   | |  +--> streaming --> answering     (until the application finishes the stream)
             waiting|
                    +--> lingering (rejected) --> gone

A connection waits for a slot if its request is large. A stream may last for any time.
"""

from enum import Enum, auto
from typing import Final

from lamina.serving.server_limits import ServerLimits

LINGER: Final = 2.0
"""Seconds for a client to read why it was rejected, while the data it still sends is discarded."""


class ConnectionStage(Enum):
    """State of a connection."""

    IDLE = auto()
    READING = auto()
    WAITING = auto()
    ANSWERING = auto()
    AWAITING = auto()
    STREAMING = auto()
    LINGERING = auto()
    GONE = auto()


WORKING: Final = frozenset({ConnectionStage.AWAITING, ConnectionStage.STREAMING})
"""States in which the application has the request, and the response may take its time."""


def stage_seconds(stage: ConnectionStage, limits: ServerLimits, *, asked: bool) -> float:
    """Return the time limit of a state; *asked* says whether the client has sent a request before."""
    if stage is ConnectionStage.LINGERING:
        return min(LINGER, limits.read_seconds)
    if stage is ConnectionStage.ANSWERING:
        return limits.write_seconds
    if stage is ConnectionStage.AWAITING:
        return limits.handler_seconds
    # A client that has not sent a request yet gets the time limit of a request, not the idle time.
    return limits.idle_seconds if stage is ConnectionStage.IDLE and asked else limits.read_seconds
