"""
Decoder of preemption requests: a pod, and on each candidate node the pods that would be evicted.

These pods (victims) come as whole pods or, with ``nodeCacheCapable``, by uid. In both cases the response has uids, so
nothing else of them is decoded.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Raw

from lamina.model.pod import Pod
from lamina.wire.extender.body import LARGE, SMALL, TALLY, AnyCaseObject, Body, check_size, unread
from lamina.wire.extender.pod_argument import read_pod

KIND: Final = "ExtenderPreemptionArgs"
LARGEST_COUNT: Final = 2**63 - 1


class ExtenderVictims(msgspec.Struct, frozen=True, gc=False):
    """The pods of one node that would be evicted."""

    uids: tuple[str, ...]
    violations: int = 0
    """Number of PodDisruptionBudgets that would be violated."""


class ExtenderPreemptionArgs(msgspec.Struct, frozen=True, gc=False):
    """A preemption request: a pod, and victims on candidate nodes."""

    pod: Pod
    victims: dict[str, ExtenderVictims]
    """By node."""
    meta: bool
    """Whether the victims came by uid, and not as whole pods."""


class VictimMeta(msgspec.Struct, frozen=True, gc=False):
    """``metadata`` of a victim, restricted to the uid."""

    uid: str = ""


class VictimPod(msgspec.Struct, frozen=True, gc=False):
    """A whole pod of which only the uid is read."""

    metadata: VictimMeta = VictimMeta()

    def __post_init__(self) -> None:
        TALLY.victim()


Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]

_BODY: Final = AnyCaseObject({"Pod": Raw, "NodeNameToVictims": Raw, "NodeNameToMetaVictims": Raw})
_WHOLE: Final = AnyCaseObject({"Pods": list[VictimPod] | None, "NumPDBViolations": Count | None}, TALLY.node)
_META_POD: Final = AnyCaseObject({"UID": str | None}, TALLY.victim)
_META: Final = AnyCaseObject({"Pods": list[_META_POD.type] | None, "NumPDBViolations": Count | None}, TALLY.node)  # type: ignore[name-defined]  # made at run time
_WHOLE_MAP: Final = msgspec.json.Decoder(dict[str, _WHOLE.type])  # type: ignore[name-defined]  # made at run time
_META_MAP: Final = msgspec.json.Decoder(dict[str, _META.type])  # type: ignore[name-defined]  # made at run time


def decode_preemption_args(body: Body) -> ExtenderPreemptionArgs:
    """Return the decoded ExtenderPreemptionArgs. Raises WireError."""
    check_size(KIND, len(body), LARGE, "the body")
    try:
        pod, whole, meta = _BODY.read(body)
        if whole is None and meta is None:
            raise ValueError("neither NodeNameToVictims nor NodeNameToMetaVictims is set")
        if whole is not None and meta is not None:
            raise ValueError("NodeNameToVictims and NodeNameToMetaVictims are both set")
        if meta is not None:
            check_size(KIND, len(body), SMALL, "a body with NodeNameToMetaVictims")
        victims = _whole(whole) if meta is None else _meta(meta)
    except (ValueError, RecursionError) as error:
        raise unread(KIND, error) from error
    return ExtenderPreemptionArgs(read_pod(KIND, pod), victims, meta is not None)


def _whole(text: Raw) -> dict[str, ExtenderVictims]:
    TALLY.start()
    victims = {}
    for node, entry in _WHOLE_MAP.decode(text).items():
        pods, violations = _WHOLE.values(entry)
        victims[node] = _victims(node, pods and [pod.metadata.uid for pod in pods], violations)
    return victims


def _meta(text: Raw) -> dict[str, ExtenderVictims]:
    TALLY.start()
    victims = {}
    for node, entry in _META_MAP.decode(text).items():
        pods, violations = _META.values(entry)
        victims[node] = _victims(node, pods and [_META_POD.values(pod)[0] for pod in pods], violations)
    return victims


def _victims(node: str, uids: list[str | None] | None, violations: int | None) -> ExtenderVictims:
    if uids is None:
        raise ValueError(f"there are no Pods for node {node:.253}")
    named = tuple([uid for uid in uids if uid])
    if len(named) < len(uids):
        raise ValueError(f"a victim on node {node:.253} has no uid")
    return ExtenderVictims(named, violations or 0)
