"""
What a trace consists of.

A trace is a `TraceHeader`, then what happened in the order it happened, then an `TraceEnd` that says how many records came before
it. Every record carries ``at``: seconds, virtual in a simulation and wall-clock in a live run. The loop's hosts write
them, evaluation and dashboard read them; this module neither opens files nor interprets anything.

A record is one JSON object per line, its kind under ``type``: ``{"type":"pod-bound","at":12.5,"pod":"default/web",…}``.
Fields may be added with a default in the same version; anything a reader of today would misread needs a new one.

Version 1 knew no failures, evictions and removed images: its readers would take a trace that has some for damaged, and
would think the room of a failed pod still taken. So there is version 2; whatever reads it reads version 1 as well. A
pod ends with exactly one of `PodFinished`, `PodFailed`, `PodEvicted`, `PodRemoved` and `PodRejected`.
"""

import math
import re
from typing import Final

import msgspec

from lamina.model.decision import Decision

FORMAT: Final = "lamina-trace"
VERSION: Final = 2

LINE_LIMIT: Final = 4 * 1024 * 1024
"""Bytes one record may take, the end of the line not counted."""


def kebab(name: str) -> str:
    """Say a class name the way the files do: ``PodBound`` is ``pod-bound``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


class TraceEntry(msgspec.Struct, frozen=True, tag_field="type", tag=kebab):
    """What all records share."""

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
    """Wall-clock second a live run began; 0 in a simulation, where the same input must give the same bytes."""


class NodeJoined(TraceEntry, frozen=True):
    """A node became part of the cluster."""

    node: str
    allocatable: dict[str, int]
    """Resource → amount, in the units of `lamina.model.resources`."""
    bandwidth: float = 0.0
    """Bytes per second it can download; 0 when not known or not limited."""


class NodeLeft(TraceEntry, frozen=True):
    """A node is no longer part of the cluster."""

    node: str


class NodeFailed(TraceEntry, frozen=True):
    """A node's kubelet stopped answering; the cluster notices later."""

    node: str


class NodeRecovered(TraceEntry, frozen=True):
    """A node that had failed works again."""

    node: str


class PodArrived(TraceEntry, frozen=True):
    """A pod asked to be placed for the first time."""

    pod: str
    """``namespace/name``, here and in all other records."""
    uid: str
    namespace: str
    images: tuple[str, ...]
    """Every image it needs; one entry for each use."""
    requests: dict[str, int]


class PodDecided(TraceEntry, frozen=True, tag="decided"):
    """The scheduler finished one attempt to place one pod."""

    decision: Decision


class PodBound(TraceEntry, frozen=True):
    """The binding of a pod to a node was accepted."""

    pod: str
    node: str


class PullStarted(TraceEntry, frozen=True):
    """A node began to download what it misses of an image."""

    node: str
    image: str
    bytes: int
    """Bytes it misses."""
    layers: int
    """Layers it misses."""


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
    """Bytes that were downloaded for it; 0 when everything was there already."""
    seconds: float
    """How long the pull took, waiting for its turn included."""


class PullFailed(TraceEntry, frozen=True):
    """An attempt to pull an image failed and is made again later."""

    node: str
    image: str
    reason: str
    retry_at: float
    """When the next attempt may begin."""


class ImagesRemoved(TraceEntry, frozen=True):
    """A node cleared images away to have room on its disk."""

    node: str
    images: tuple[str, ...]
    bytes: int
    """What became free on the disk, which layers that other images share do not."""
    reason: str
    """``collected``: by the image collector; ``pressure``: all unused ones at once, because the disk was nearly full."""


class PodStarted(TraceEntry, frozen=True):
    """All containers of a pod run."""

    pod: str
    node: str


class PodFinished(TraceEntry, frozen=True):
    """A pod ended by itself; its node has the room back."""

    pod: str
    node: str


class PodRestarted(TraceEntry, frozen=True):
    """The containers of a pod run again after they had ended."""

    pod: str
    node: str
    restarts: int
    """How often that has happened to the pod by now."""


class PodFailed(TraceEntry, frozen=True):
    """A pod ended with a failure and is not started again; its node has the room back."""

    pod: str
    node: str
    reason: str
    """In Kubernetes' words: ``Error``, ``DeadlineExceeded``."""


class PodEvicted(TraceEntry, frozen=True):
    """A pod was ended because its node was short of something or failed; its node has the room back."""

    pod: str
    node: str
    reason: str


class PodRemoved(TraceEntry, frozen=True):
    """A pod was deleted, or its node left; ``node`` is empty when it had none yet."""

    pod: str
    node: str = ""


class PodRejected(TraceEntry, frozen=True):
    """A node refused to run a pod that had been bound to it."""

    pod: str
    node: str
    reason: str


class TraceEnd(TraceEntry, frozen=True, tag="end"):
    """The last record; a trace without it was cut short."""

    records: int
    """How many records came before this one, the header included."""


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
    """Name the first field that is infinite or not a number, which JSON cannot say; empty when there is none."""
    for name in FLOATS[type(record)]:
        if not math.isfinite(getattr(record, name)):
            return name
    return "decision.at" if isinstance(record, PodDecided) and not math.isfinite(record.decision.at) else ""


FLOATS: Final = {
    kind: tuple(field.name for field in msgspec.structs.fields(kind) if field.type is float)
    for kind in TraceRecord.__args__
}
