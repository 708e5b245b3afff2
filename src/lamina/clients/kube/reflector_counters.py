"""Counters of a reflector, for metrics and debug endpoints."""

from collections import Counter

import msgspec


class ReflectorCounters(msgspec.Struct):
    """Counters since the start."""

    connects: int = 0
    """Attempts to list or to watch."""
    relists: Counter[str] = msgspec.field(default_factory=Counter)
    """Lists after the first one, by reason: expired, restored, silent, broken."""
    events: int = 0
    """Events and listed objects received, without bookmarks."""
    bookmarks: int = 0
    undecodable: int = 0
    """Object versions that could not be decoded and were skipped."""
    oversized: int = 0
    """Events that exceeded the line limit and were skipped."""
    broken: int = 0
    """Watches that ended inside a line or with a line that is not an event."""
    idle: int = 0
    """Connections closed because no data arrived."""
