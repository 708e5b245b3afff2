"""
The decision annotation of a pod, which is written with the Binding.

The API server copies a Binding's annotations to the pod in the same request. The explanation therefore needs no write
of its own and lives as long as the pod. It is small, because every client that watches pods receives it. The
scheduler's debug endpoint has the full decision while it is remembered.
"""

import math
from typing import Annotated, Final

import msgspec

from lamina.model.decision import Decision
from lamina.model.locality_explanation import Savings
from lamina.wire.errors import WireError

DECISION_ANNOTATION: Final = "lamina.dev/decision"

MOST_BYTES: Final = 2048
"""Largest annotation in bytes; beyond that plugins are omitted, then everything but the node."""

Name = Annotated[str, msgspec.Meta(max_length=253)]


class OtherNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """The node with the second-best total."""

    node: Name
    total: int = 0


class NotedSaving(msgspec.Struct, frozen=True, omit_defaults=True):
    """Estimated saving compared with another node; negative when the other node would have been better."""

    seconds: float = 0.0
    bytes: int = 0


class DecisionNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Content of the annotation."""

    node: Name
    at: float = 0.0
    """Seconds since 1970."""
    profile: str = ""
    attempt: int = 1
    nodes: int = 0
    feasible: int = 0
    tied: int = 0
    """Number of nodes with the best total."""
    total: int = 0
    points: dict[str, int] = {}
    """Plugin → its contribution to the total."""
    runner_up: OtherNode | None = None
    seconds: float | None = None
    """Readiness estimate in seconds; omitted when unknown."""
    download: int | None = None
    """Bytes that the node has to download."""
    against_mean: NotedSaving | None = None
    against_runner_up: NotedSaving | None = None


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(DecisionNote)


def note_of(decision: Decision) -> DecisionNote:
    """Return the part of a decision that is written to the pod."""
    assert decision.chosen is not None, "only a pod that was placed has a binding"
    chosen, second, locality = decision.chosen, decision.runner_up, decision.locality
    return DecisionNote(
        node=chosen.node,
        at=round(decision.at, 3),
        profile=decision.profile,
        attempt=decision.attempt,
        nodes=decision.nodes,
        feasible=decision.feasible,
        tied=decision.tied,
        total=chosen.total or 0,
        points={score.plugin: score.points for score in chosen.scores},
        runner_up=None if second is None else OtherNode(second.node, second.total or 0),
        seconds=None if locality is None or not math.isfinite(locality.seconds) else round(locality.seconds, 3),
        download=None if locality is None else locality.download,
        against_mean=None if locality is None else _saving(locality.against_mean),
        against_runner_up=None if locality is None else _saving(locality.against_runner_up),
    )


def _saving(saved: Savings | None) -> NotedSaving | None:
    if saved is None or not math.isfinite(saved.seconds):
        return None
    return NotedSaving(round(saved.seconds, 3), saved.bytes)


def encode_note(decision: Decision) -> str:
    """Return a decision as the annotation's text, at most MOST_BYTES long."""
    note = note_of(decision)
    text = _ENCODER.encode(note)
    if len(text) > MOST_BYTES:
        text = _ENCODER.encode(msgspec.structs.replace(note, points={}))
    if len(text) > MOST_BYTES:
        text = _ENCODER.encode(DecisionNote(node=note.node, at=note.at, attempt=note.attempt))
    return text.decode()


def decode_note(text: str) -> DecisionNote:
    """
    Return the parsed annotation.

    Raises WireError: any client with permission to update the pod may have changed it.
    """
    if len(text) > 2 * MOST_BYTES:
        raise WireError("decision", f"annotation {DECISION_ANNOTATION} is longer than {2 * MOST_BYTES} characters")
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise WireError("decision", f"annotation {DECISION_ANNOTATION}: {error}") from error
