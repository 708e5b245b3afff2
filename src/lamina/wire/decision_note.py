"""
A decision as it is written on its pod: the annotation that comes with the Binding.

The API server copies a Binding's annotations onto the pod in the same act, so why a pod is where it is costs no write of
its own and lives as long as the pod. Small on purpose: a page of text on every pod would be paid for by everybody who
watches pods. Whoever wants more asks the scheduler while it remembers.
"""

import math
from typing import Annotated, Final

import msgspec

from lamina.model.decision import Decision
from lamina.model.locality_explanation import Savings
from lamina.wire.errors import WireError

DECISION_ANNOTATION: Final = "lamina.dev/decision"

MOST_BYTES: Final = 2048
"""What the annotation may take; then plugins are left out, then everything but the node."""

Name = Annotated[str, msgspec.Meta(max_length=253)]


class OtherNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """The node that came second."""

    node: Name
    total: int = 0


class NotedSaving(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a choice saves against another, as it was estimated; negative when the other would have been better."""

    seconds: float = 0.0
    bytes: int = 0


class DecisionNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What the annotation says."""

    node: Name
    at: float = 0.0
    """Seconds since 1970."""
    profile: str = ""
    attempt: int = 1
    nodes: int = 0
    feasible: int = 0
    tied: int = 0
    """How many nodes shared the best total."""
    total: int = 0
    points: dict[str, int] = {}
    """What each plugin added to the total."""
    runner_up: OtherNode | None = None
    seconds: float | None = None
    """Until the images are ready there; left out when nobody knows."""
    download: int | None = None
    """Bytes the node has to download."""
    against_mean: NotedSaving | None = None
    against_runner_up: NotedSaving | None = None


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(DecisionNote)


def note_of(decision: Decision) -> DecisionNote:
    """Take from a decision what goes on the pod."""
    assert decision.chosen is not None, "only a pod that was placed has a binding"
    chosen, second, story = decision.chosen, decision.runner_up, decision.locality
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
        seconds=None if story is None or not math.isfinite(story.seconds) else round(story.seconds, 3),
        download=None if story is None else story.download,
        against_mean=None if story is None else _saving(story.against_mean),
        against_runner_up=None if story is None else _saving(story.against_runner_up),
    )


def _saving(saved: Savings | None) -> NotedSaving | None:
    if saved is None or not math.isfinite(saved.seconds):
        return None
    return NotedSaving(round(saved.seconds, 3), saved.bytes)


def encode_note(decision: Decision) -> str:
    """Write a decision as the annotation's text, within its bounds."""
    note = note_of(decision)
    text = _ENCODER.encode(note)
    if len(text) > MOST_BYTES:
        text = _ENCODER.encode(msgspec.structs.replace(note, points={}))
    if len(text) > MOST_BYTES:
        text = _ENCODER.encode(DecisionNote(node=note.node, at=note.at, attempt=note.attempt))
    return text.decode()


def decode_note(text: str) -> DecisionNote:
    """Read the annotation, which anybody who may change the pod may have changed."""
    if len(text) > 2 * MOST_BYTES:
        raise WireError("decision", f"annotation {DECISION_ANNOTATION} is longer than any that Lamina writes")
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise WireError("decision", f"annotation {DECISION_ANNOTATION}: {error}") from error
