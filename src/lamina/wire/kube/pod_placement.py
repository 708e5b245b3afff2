"""Decoder of a pod's placement: its node, its PodScheduled condition, and the decision annotation."""

from typing import Final

import msgspec
from msgspec import Raw

from lamina.model.pod import DEFAULT_SCHEDULER
from lamina.wire.decision_note import DECISION_ANNOTATION, DecisionNote, decode_note
from lamina.wire.errors import WireError
from lamina.wire.kube.meta import ObjectMeta


class PodPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's placement as stored in the API server: node, PodScheduled condition, decision annotation."""

    pod: str
    scheduler: str = DEFAULT_SCHEDULER
    node: str = ""
    phase: str = ""
    reason: str = ""
    """Reason why it is pending; empty when it is not, or before the first scheduling attempt."""
    message: str = ""
    note: DecisionNote | None = None
    """The explanation that Lamina wrote when it chose the node."""
    odd_note: str = ""
    """Why the annotation cannot be read, if so."""


class _PlacementCondition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class _PlacementSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str | None = None
    scheduler_name: str | None = None


class _PlacementStatus(msgspec.Struct, frozen=True, gc=False):
    phase: str | None = None
    conditions: list[_PlacementCondition] | None = None


class _PlacementPod(msgspec.Struct, frozen=True, gc=False):
    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: _PlacementSpec = _PlacementSpec()
    status: _PlacementStatus | None = None


_DECODER: Final = msgspec.json.Decoder(_PlacementPod)
_NO_STATUS: Final = _PlacementStatus()


def decode_pod_placement(data: bytes | Raw) -> PodPlacement:
    """Return the placement of a v1 Pod. Raises WireError."""
    try:
        pod = _DECODER.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError("Pod", f"{error}; check that a Kubernetes API server sent it") from error
    if pod.kind and pod.kind != "Pod":
        raise WireError("Pod", f"this is a {pod.kind:.80}; ask for pods")
    status = pod.status or _NO_STATUS
    waiting = next(
        (one for one in status.conditions or () if one.type == "PodScheduled" and one.status != "True"), None
    )
    written = (pod.metadata.annotations or {}).get(DECISION_ANNOTATION)
    note, odd = _note(written)
    return PodPlacement(
        pod=pod.metadata.key,
        scheduler=pod.spec.scheduler_name or DEFAULT_SCHEDULER,
        node=pod.spec.node_name or "",
        phase=status.phase or "",
        reason=(waiting and waiting.reason) or "",
        message=(waiting and waiting.message) or "",
        note=note,
        odd_note=odd,
    )


def _note(written: str | None) -> tuple[DecisionNote | None, str]:
    if written is None:
        return None, ""
    try:
        return decode_note(written), ""
    except WireError as error:
        return None, str(error)
