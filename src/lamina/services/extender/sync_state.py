"""Whether the extender's caches are synced, and how old its data is."""

import time
from collections.abc import Callable
from typing import Final

from lamina.services.informers.informer_set import InformerSet

AGENTS: Final = "agents"
"""Named as unsynced while all resources are listed and their events are still processed."""


class SyncState:
    """The sync of one extender, from its informers; without informers it is complete."""

    def __init__(self, informers: InformerSet | None, now: Callable[[], float] = time.monotonic) -> None:
        """Read the state of *informers*."""
        self._informers = informers
        self._now = now
        self._complete = informers is None

    def complete(self) -> None:
        """Record that all caches were synced once; from then on requests are answered, even if a watch fails."""
        self._complete = True

    def ready(self) -> bool:
        """Return whether all caches were synced once."""
        return self._complete

    def unsynced(self) -> list[str]:
        """Return the resources that are not synced or not processed yet."""
        if self._informers is None or self._complete:
            return []
        return self._informers.unsynced or [AGENTS]

    def stale(self) -> dict[str, float]:
        """Return for how many seconds changes of each resource may have been missed; 0 while its watch is up."""
        if self._informers is None:
            return {}
        now, seen = self._now(), self._informers.reflectors.items()
        since = {kind: reflector.stale_since for kind, reflector in seen if reflector.synced}
        return {kind: 0.0 if began is None else now - began for kind, began in since.items()}
