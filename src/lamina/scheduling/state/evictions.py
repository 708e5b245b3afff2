"""
Evictions in flight: pods that this scheduler asked its host to evict and that are not seen leaving yet.

    Evict ──begin──> in flight ──(the pod is seen deleting, finished or gone; EvictFailed)──> ended

No pod is evicted twice: neither for the same pod, nor for another one that chooses the same victims.
"""

from collections.abc import Iterable

from lamina.model.pod import PodUid


class Evictions:
    """Preemptor by victim."""

    __slots__ = ("_preemptors",)

    def __init__(self) -> None:
        """Start without evictions."""
        self._preemptors: dict[PodUid, PodUid] = {}

    def __len__(self) -> int:
        """Return the number of evictions in flight."""
        return len(self._preemptors)

    def __contains__(self, victim: object) -> bool:
        """Return whether a pod's eviction is in flight."""
        return victim in self._preemptors

    def begin(self, victim: PodUid, preemptor: PodUid) -> None:
        """Record that *victim* is evicted in favour of *preemptor*."""
        self._preemptors[victim] = preemptor

    def end(self, victim: PodUid) -> None:
        """Forget an eviction: the pod leaves, or was not evicted."""
        if self._preemptors:
            self._preemptors.pop(victim, None)

    def snapshot(self) -> tuple[tuple[PodUid, PodUid], ...]:
        """Return (victim, preemptor) for each eviction in flight."""
        return tuple(self._preemptors.items())

    def restore(self, evictions: Iterable[tuple[PodUid, PodUid]]) -> None:
        """Restore a snapshot into an empty object."""
        self._preemptors.update(evictions)
