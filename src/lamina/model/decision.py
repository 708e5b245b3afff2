"""
Why a pod was placed on its node, or why it is still pending.

The loop fills a `Decision` for every attempt; the live service, the trace, `lamina explain` and the demo all show the
same structure. *Brief* detail lists only the chosen node and the runner-up, *full* detail every node. Plugins add
explanations in their own structs, which the framework does not inspect.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

import msgspec
from msgspec import UNSET, UnsetType

from lamina.model.locality_explanation import LocalityExplanation

NO_NODES: Final = "no nodes available to schedule pods"

DecisionOutcome = Literal["placed", "unschedulable", "failed"]


class Refusal(msgspec.Struct, frozen=True):
    """A plugin's rejection of one node."""

    plugin: str
    reasons: tuple[str, ...]
    final: bool = False
    """True when the pod would not fit even after evictions from the node."""


class PluginScore(msgspec.Struct, frozen=True):
    """The score that one plugin gave one node, 0..100 before the weight."""

    plugin: str
    score: int
    weight: int
    facts: dict[str, int] = {}
    """The inputs of the score, as the plugin names them (full detail only)."""

    @property
    def points(self) -> int:
        """The plugin's contribution to the node's total."""
        return self.score * self.weight


class NodeVerdict(msgspec.Struct, frozen=True):
    """The result for one node: either rejected, or scored (``total`` is the sum of the plugins' points)."""

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
    """Number of nodes in the cluster."""
    feasible: int
    """Number of nodes that passed every filter."""
    chosen: NodeVerdict | None = None
    runner_up: NodeVerdict | None = None
    tied: int = 0
    """Number of nodes with the best total; one of them was picked at random."""
    refusals: dict[str, int] = {}
    """Reason → number of nodes, over all rejected nodes (full detail, and whenever no node fits)."""
    verdicts: tuple[NodeVerdict, ...] = ()
    """Every node (full detail only)."""
    message: str = ""
    """For a pod that was not placed: the reason, worded as in kube-scheduler."""
    locality: LocalityExplanation | None = None
    """The explanation of the LayerLocality plugin. It is not in `parts` because the first format had it here."""
    notes: tuple[str, ...] = ()
    """What plugins found wrong with the pod without rejecting it."""
    parts: dict[str, Any] | UnsetType = UNSET
    """
    Other explanations: plugin → its own struct; omitted when there are none.

    In a decision read from a file, a part is a plain mapping. Only its plugin knows the struct to pass to
    `msgspec.convert`.
    """

    def with_parts(self, parts: Mapping[str, msgspec.Struct]) -> Self:
        """Return the decision with these parts, keyed by plugin."""
        locality = next((part for part in parts.values() if isinstance(part, LocalityExplanation)), self.locality)
        others = {plugin: part for plugin, part in parts.items() if part is not locality}
        return msgspec.structs.replace(self, locality=locality, parts=others or UNSET)

    @property
    def margin(self) -> int | None:
        """Points between the chosen node and the runner-up; None when no other node was feasible."""
        if self.chosen is None or self.runner_up is None:
            return None
        return (self.chosen.total or 0) - (self.runner_up.total or 0)


def pending_message(nodes: int, refusals: dict[str, int], note: str = "", after: str = "") -> str:
    """
    Return why no node fits, worded as in kube-scheduler.

    *note* replaces the histogram when the pod was rejected before any node was filtered; *after* is the result of
    preemption.
    """
    if nodes == 0:
        return NO_NODES
    text = f"0/{nodes} nodes are available:"
    if note:
        text += f" {note}."
    elif refusals:
        text += " " + ", ".join(sorted(f"{count} {reason}" for reason, count in refusals.items())) + "."
    return f"{text} {after}" if after else text
