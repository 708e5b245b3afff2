"""What a host wants to know of an engine beside its answers: what to store, and what to log. No state of the engine."""

import math
from collections import deque
from collections.abc import Sequence
from typing import Final

from lamina.qos.incarnation import FinishedIncarnation

MOST_FINISHED: Final = 4096
"""Finished incarnations that wait for the host; beyond that the oldest are lost."""


class HostNotes:
    """Notes of one engine; the engine writes them and never reads them."""

    def __init__(self) -> None:
        """Start without notes."""
        self.changes = 0
        """Counts creations, bindings and ends of pods: what a summary written before does not have."""
        self.adopted_at = -math.inf
        """When the adopted summary was written."""
        self.finished: deque[FinishedIncarnation] = deque(maxlen=MOST_FINISHED)
        """The last finished incarnations, for a host that logs them and removes them."""

    def finish(self, finished: Sequence[FinishedIncarnation]) -> None:
        """Note finished incarnations."""
        self.finished.extend(finished)
        self.changes += len(finished)
