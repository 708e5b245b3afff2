"""
Why a pod went where it went, or why it still waits.

The loop fills a `Decision` for every attempt; the live service, the trace, `lamina explain` and the demo all show the
same structure. In *brief* detail only the chosen node and the runner-up are listed, in *full* detail every node. Plugins
add parts of their own, in their own terms; the framework does not look into them.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

import msgspec
from msgspec import UNSET, UnsetType

from lamina.model.locality_explanation import LocalityExplanation

NO_NODES: Final = "no nodes available to schedule pods"

DecisionOutcome = Literal["placed", "unschedulable", "failed"]


class Refusal(msgspec.Struct, frozen=True):
    """A plugin's "no" to one node."""

    plugin: str
    reasons: tuple[str, ...]
    final: bool = False
    """Evicting pods from the node would not help."""


class PluginScore(msgspec.Struct, frozen=True):
    """What one plugin gave one node, 0..100 before the weight."""

    plugin: str
    score: int
    weight: int
    facts: dict[str, int] = {}
    """What the score was made of, in the plugin's own terms (full detail only)."""

    @property
    def points(self) -> int:
        """What the plugin added to the node's total."""
        return self.score * self.weight


class NodeVerdict(msgspec.Struct, frozen=True):
    """How one node fared: either refused, or scored (``total`` is the sum of the plugins' points)."""

    node: str
    total: int | None = None
    scores: tuple[PluginScore, ...] = ()
    refusal: Refusal | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to place one pod."""

    pod: str
    uid: str
    at: float
    attempt: int
    profile: str
    outcome: DecisionOutcome
    nodes: int
    """How many nodes there were."""
    feasible: int
    """How many of them passed every filter."""
    chosen: NodeVerdict | None = None
    runner_up: NodeVerdict | None = None
    tied: int = 0
    """How many nodes shared the best total; one of them was picked at random."""
    refusals: dict[str, int] = {}
    """Reason → number of nodes, over all nodes that were refused (full detail, and whenever nothing fits)."""
    verdicts: tuple[NodeVerdict, ...] = ()
    """Every node (full detail only)."""
    message: str = ""
    """For a pod that was not placed: kube-scheduler's words."""
    locality: LocalityExplanation | None = None
    """The part of the plugin that looks at layers, which has a place of its own since the first format."""
    notes: tuple[str, ...] = ()
    """What plugins found wrong with the pod without refusing it."""
    parts: dict[str, Any] | UnsetType = UNSET
    """
    What else plugins explain in their own terms: plugin → its own struct; left out when there is none.

    Read from a file, a part is a plain mapping: only its plugin knows the struct, and can ask `msgspec.convert` for it.
    """

    def with_parts(self, parts: Mapping[str, msgspec.Struct]) -> Self:
        """Return the decision with these parts added, each by the plugin of that name."""
        story = next((part for part in parts.values() if isinstance(part, LocalityExplanation)), self.locality)
        others = {plugin: part for plugin, part in parts.items() if part is not story}
        return msgspec.structs.replace(self, locality=story, parts=others or UNSET)

    @property
    def margin(self) -> int | None:
        """Points between the chosen node and the runner-up; None when nothing else was feasible."""
        if self.chosen is None or self.runner_up is None:
            return None
        return (self.chosen.total or 0) - (self.runner_up.total or 0)


def pending_message(nodes: int, refusals: dict[str, int], note: str = "", after: str = "") -> str:
    """
    Say why nothing fits, in kube-scheduler's words.

    *note* replaces the histogram when the pod was refused before any node was looked at; *after* is what the attempt
    to make room added.
    """
    if nodes == 0:
        return NO_NODES
    text = f"0/{nodes} nodes are available:"
    if note:
        text += f" {note}."
    elif refusals:
        text += " " + ", ".join(sorted(f"{count} {reason}" for reason, count in refusals.items())) + "."
    return f"{text} {after}" if after else text
