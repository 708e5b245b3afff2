"""
The life of one incarnation (one pod object) of a replica.

    waiting ──bound──> binding ──runs──> effective <──readiness──> discarded ──> ended
       └────────────────────────────────── ends ──────────────────────────────────^

Which fact starts the effective time depends on `RunningFrom`. The four times always add up to the time from the pod's
creation until it ended, or until now. Times are seconds since the engine's origin.
"""

import msgspec

from lamina.model.pod import PodUid
from lamina.qos.time_sums import BINDING, DISCARDED, EFFECTIVE, KINDS, WAITING


class PodRecordSnapshot(msgspec.Struct, frozen=True):
    """Serializable form of `PodRecord`."""

    uid: PodUid
    namespace: str
    name: str
    created_at: float
    state: int
    since: float
    spent: tuple[float, ...]
    ran_from: float | None
    ended_at: float | None
    bound: bool
    reserved: bool
    terminating: bool
    succeeded: bool


class PodRecord:
    """One pod: the state that it is in, since when, and the times spent before."""

    __slots__ = (
        "bound",
        "created_at",
        "ended_at",
        "name",
        "namespace",
        "ran_from",
        "reserved",
        "since",
        "spent",
        "state",
        "succeeded",
        "terminating",
        "uid",
        "victim_row",
    )

    def __init__(self, uid: PodUid, namespace: str, name: str, created_at: float) -> None:
        """Start with a waiting pod."""
        self.uid = uid
        self.namespace = namespace
        self.name = name
        self.created_at = created_at
        self.state = WAITING
        self.since = created_at
        self.spent = [0.0] * KINDS
        self.ran_from: float | None = None
        """When its running time began."""
        self.ended_at: float | None = None
        self.bound = False
        self.reserved = False
        """Whether the scheduler chose a node and its binding has not ended."""
        self.terminating = False
        self.succeeded = False
        self.victim_row = -1
        """Its row in the order table, if it is the running pod of a Job."""

    @property
    def running(self) -> bool:
        """Whether its effective time grows."""
        return self.state == EFFECTIVE and self.ended_at is None

    @property
    def lost(self) -> bool:
        """Whether it ended without success."""
        return self.ended_at is not None and not self.succeeded

    def times(self, t: float) -> list[float]:
        """Return effective, discarded, waiting and binding time at *t*."""
        found = list(self.spent)
        if self.ended_at is None:
            found[self.state] += max(t - self.since, 0.0)
        return found

    def run_within(self, start: float, t: float) -> float:
        """Return the effective time of its current run from *start* to *t*."""
        return max(t - max(self.since, start), 0.0) if self.running else 0.0

    def times_since(self, start: float, t: float) -> list[float]:
        """
        Return the four times from *start* to *t*.

        Exact unless the pod lost its readiness in between: then the earlier times of both states count as one.
        """
        kinds = self.times(t)
        # Waiting, binding and running follow one another.
        begin = self.created_at
        for kind in (WAITING, BINDING, EFFECTIVE, DISCARDED):
            end = begin + kinds[kind]
            kinds[kind] = max(end - max(begin, start), 0.0)
            begin = end
        return kinds

    def snapshot(self) -> PodRecordSnapshot:
        """Return the state as data."""
        return PodRecordSnapshot(
            self.uid,
            self.namespace,
            self.name,
            self.created_at,
            self.state,
            self.since,
            tuple(self.spent),
            self.ran_from,
            self.ended_at,
            self.bound,
            self.reserved,
            self.terminating,
            self.succeeded,
        )

    @classmethod
    def restored(cls, snapshot: PodRecordSnapshot) -> "PodRecord":
        """Return the pod of a snapshot."""
        pod = cls(snapshot.uid, snapshot.namespace, snapshot.name, snapshot.created_at)
        pod.state, pod.since, pod.spent = snapshot.state, snapshot.since, list(snapshot.spent)
        pod.ran_from, pod.ended_at = snapshot.ran_from, snapshot.ended_at
        pod.bound, pod.reserved, pod.terminating = snapshot.bound, snapshot.reserved, snapshot.terminating
        pod.succeeded = snapshot.succeeded
        return pod
