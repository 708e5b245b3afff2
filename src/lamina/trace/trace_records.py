"""
Records of a trace.

A trace is a `TraceHeader`, then records in the order of events, then a `TraceEnd` with the number of records before it.
Every record has ``at``: seconds, virtual in a simulation and wall-clock in a live run. The loop's hosts write traces;
evaluation and dashboard read them. This module neither opens files nor interprets records.

A record is one JSON object per line, with its type under ``type``:
``{"type":"pod-bound","at":12.5,"pod":"default/web",…}``. Fields with a default may be added within a version; any
change that an existing reader would misread needs a new version.

Version 1 had no failures, evictions and removed images. Its readers would reject a trace that has them as damaged, and
would treat the resources of a failed pod as still in use. A reader of version 2 also reads version 1. A pod ends with
exactly one of `PodFinished`, `PodFailed`, `PodEvicted`, `PodRemoved` and `PodRejected`.
"""

import math
import re
from typing import Final

import msgspec

from lamina.model.decision import Decision

FORMAT: Final = "lamina-trace"
VERSION: Final = 2

LINE_LIMIT: Final = 4 * 1024 * 1024
"""Largest record in bytes, without the line end."""


def kebab(name: str) -> str:
    """Return the tag of a class name in files: ``PodBound`` is ``pod-bound``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


class TraceEntry(msgspec.Struct, frozen=True, tag_field="type", tag=kebab):
    """Base class of all records."""

    at: float
    """Seconds: since the start of a simulation, or since 1970 in a live run. Always finite."""


def type_of(entry: TraceEntry) -> str:
    """Return the value of the `type` field that the record has on disk."""
    return str(entry.__struct_config__.tag)


class TraceHeader(TraceEntry, frozen=True, kw_only=True, tag="header"):
    """The first record: what was run, so that it can be run again."""

    format: str = FORMAT
    version: int = VERSION
    scenario: str = ""
    """Name of the scenario; empty in a live run."""
    profile: str = ""
    """Name of the scheduler profile."""
    seed: int = 0
    started: float = 0.0
    """When a live run began, in seconds since 1970; 0 in a simulation, whose bytes must depend on the input only."""


class NodeJoined(TraceEntry, frozen=True):
    """A node joined the cluster."""

    node: str
    allocatable: dict[str, int]
    """Resource → amount, in the units of `lamina.model.resources`."""
    bandwidth: float = 0.0
    """Download bandwidth in bytes per second; 0 when unknown or unlimited."""


class NodeLeft(TraceEntry, frozen=True):
    """A node left the cluster."""

    node: str


class NodeFailed(TraceEntry, frozen=True):
    """A node's kubelet stopped responding; the cluster notices later."""

    node: str


class NodeRecovered(TraceEntry, frozen=True):
    """A failed node works again."""

    node: str


class PodArrived(TraceEntry, frozen=True):
    """A new pod is waiting to be placed."""

    pod: str
    """``namespace/name``, here and in all other records."""
    uid: str
    namespace: str
    images: tuple[str, ...]
    """Every image it needs; one entry per use."""
    requests: dict[str, int]


class PodDecided(TraceEntry, frozen=True, tag="decided"):
    """The scheduler finished one attempt to place one pod."""

    decision: Decision


class PodBound(TraceEntry, frozen=True):
    """The binding of a pod to a node was accepted."""

    pod: str
    node: str


class PullStarted(TraceEntry, frozen=True):
    """A node began to download the missing layers of an image."""

    node: str
    image: str
    bytes: int
    """Missing bytes."""
    layers: int
    """Number of missing layers."""


class LayerPulled(TraceEntry, frozen=True):
    """One layer arrived on a node."""

    node: str
    layer: str
    bytes: int


class PullDone(TraceEntry, frozen=True):
    """A node holds the whole image."""

    node: str
    image: str
    bytes: int
    """Bytes downloaded for the image; 0 when all layers were held already."""
    seconds: float
    """Duration of the pull, including the time in the node's pull queue."""


class PullFailed(TraceEntry, frozen=True):
    """An attempt to pull an image failed; the kubelet retries later."""

    node: str
    image: str
    reason: str
    retry_at: float
    """When the next attempt may begin."""


class ImagesRemoved(TraceEntry, frozen=True):
    """Garbage collection removed images from a node's disk."""

    node: str
    images: tuple[str, ...]
    bytes: int
    """Bytes freed on the disk, without layers that other images share."""
    reason: str
    """``collected``: by image garbage collection; ``pressure``: all unused images, because the disk was nearly full."""


class PodStarted(TraceEntry, frozen=True):
    """All containers of a pod run."""

    pod: str
    node: str


class PodFinished(TraceEntry, frozen=True):
    """A pod completed; its resources on the node are free again."""

    pod: str
    node: str


class PodRestarted(TraceEntry, frozen=True):
    """The containers of a pod run again after they had ended."""

    pod: str
    node: str
    restarts: int
    """Restarts of the pod so far."""


class PodFailed(TraceEntry, frozen=True):
    """A pod failed and is not restarted; its resources on the node are free again."""

    pod: str
    node: str
    reason: str
    """As in Kubernetes: ``Error``, ``DeadlineExceeded``."""


class PodEvicted(TraceEntry, frozen=True):
    """A pod was evicted because its node was short of a resource or failed; its resources are free again."""

    pod: str
    node: str
    reason: str


class PodRemoved(TraceEntry, frozen=True):
    """A pod was deleted, or its node left; ``node`` is empty when it was not bound."""

    pod: str
    node: str = ""


class PodRejected(TraceEntry, frozen=True):
    """A kubelet rejected a pod that had been bound to its node."""

    pod: str
    node: str
    reason: str


class TraceEnd(TraceEntry, frozen=True, tag="end"):
    """The last record; a trace without it is truncated."""

    records: int
    """Number of records before this one, including the header."""


TraceRecord = (
    TraceHeader
    | NodeJoined
    | NodeLeft
    | NodeFailed
    | NodeRecovered
    | PodArrived
    | PodDecided
    | PodBound
    | PullStarted
    | LayerPulled
    | PullDone
    | PullFailed
    | ImagesRemoved
    | PodStarted
    | PodRestarted
    | PodFinished
    | PodFailed
    | PodEvicted
    | PodRemoved
    | PodRejected
    | TraceEnd
)


def not_finite(record: TraceRecord) -> str:
    """Return the first field that is infinite or NaN, which JSON cannot represent; empty when there is none."""
    for name in FLOATS[type(record)]:
        if not math.isfinite(getattr(record, name)):
            return name
    return "decision.at" if isinstance(record, PodDecided) and not math.isfinite(record.decision.at) else ""


FLOATS: Final = {
    kind: tuple(field.name for field in msgspec.structs.fields(kind) if field.type is float)
    for kind in TraceRecord.__args__
}
