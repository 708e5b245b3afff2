"""What a reflector has been through, for metrics and for whoever looks after it."""

from collections import Counter

import msgspec


class ReflectorCounters(msgspec.Struct):
    """Everything counts up from zero at the start."""

    connects: int = 0
    """Attempts to list or to watch."""
    relists: Counter[str] = msgspec.field(default_factory=Counter)
    """How often a list became necessary after the first, by reason: expired, restored, silent, broken."""
    events: int = 0
    """Events and listed objects that were taken in, bookmarks not among them."""
    bookmarks: int = 0
    undecodable: int = 0
    """Versions of objects that could not be read; each of them is passed over."""
    oversized: int = 0
    """Events that were too long to be read; each of them is passed over."""
    broken: int = 0
    """Watches that ended in the middle of a line or in something that is no event."""
    idle: int = 0
    """Connections that were given up because nothing came."""
