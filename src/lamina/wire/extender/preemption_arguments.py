"""
What kube-scheduler asks before it evicts: a pod that needs room, and on each candidate node the pods that would go.

Called preemption victims upstream; they come as whole pods or, with ``nodeCacheCapable``, by uid. Either way the answer
names uids, so nothing else of them is read.
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
    """How many disruption budgets that would break."""


class ExtenderPreemptionArgs(msgspec.Struct, frozen=True, gc=False):
    """A question: on which of these nodes may pods be evicted to make room for this one."""

    pod: Pod
    victims: dict[str, ExtenderVictims]
    """By node."""
    meta: bool
    """Whether the victims came by uid, and not as whole pods."""


class VictimMeta(msgspec.Struct, frozen=True, gc=False):
    """``metadata`` of a victim, as far as it matters here."""

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
    """Read an ExtenderPreemptionArgs; `WireError` says what is wrong with it."""
    check_size(KIND, len(body), LARGE, "the body")
    try:
        pod, whole, meta = _BODY.read(body)
        if whole is None and meta is None:
            raise ValueError("neither NodeNameToVictims nor NodeNameToMetaVictims is there")
        if whole is not None and meta is not None:
            raise ValueError("NodeNameToVictims and NodeNameToMetaVictims are both there")
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
        pods, violations = _WHOLE.said(entry)
        victims[node] = _victims(node, pods and [pod.metadata.uid for pod in pods], violations)
    return victims


def _meta(text: Raw) -> dict[str, ExtenderVictims]:
    TALLY.start()
    victims = {}
    for node, entry in _META_MAP.decode(text).items():
        pods, violations = _META.said(entry)
        victims[node] = _victims(node, pods and [_META_POD.said(pod)[0] for pod in pods], violations)
    return victims


def _victims(node: str, uids: list[str | None] | None, violations: int | None) -> ExtenderVictims:
    if uids is None:
        raise ValueError(f"there are no Pods under node {node:.253}")
    named = tuple([uid for uid in uids if uid])
    if len(named) < len(uids):
        raise ValueError(f"a victim on node {node:.253} has no uid")
    return ExtenderVictims(named, violations or 0)
