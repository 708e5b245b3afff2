"""
Congestion: prefer nodes whose annotation `congestion-factor` is low. What congests a node is up to whoever annotates it.

    points = 100 · (1 - factor / factorMax), rounded down        level = 10 · (1 - factor / factorMax), rounded half up

A factor counts from 0 to *factorMax*, and what lies beyond either end counts as that end. Levels come from the points: since
these are rounded down, tenths of them rounded half up are what the second formula says, for every factor.

A node that says nothing, or no number, counts as the mean of the feasible ones that do: neither a refuge nor avoided. So does
one whose factor is old, as far as it is not believed any more (`ClusterUsage.dated`); a factor that does not say when it was
written (``lamina.dev/congestion-observed-at``) holds.

As it was at first (*compatible*), a node without a whole number is not congested at all, and no factor grows old.
"""

import re
from collections.abc import Hashable, Mapping
from typing import Annotated, ClassVar, Final

import msgspec
import numpy as np

from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.normalize import unscored
from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.contract.points import MAX_SCORE, Reads
from lamina.scheduling.contract.scheduling_agent import AgentSettings
from lamina.scheduling.state.columns import Bools, Floats, Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "Congestion"
ANNOTATION: Final = "congestion-factor"
STAMP: Final = "lamina.dev/congestion-observed-at"
"""Says when that was so; `lamina annotate congestion` writes it."""
LARGEST: Final = 1_000_000_000
DIGITS: Final = len(str(LARGEST))
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,64}")
_LARGEST_WHOLE: Final = 2**63 - 1


class CongestionReadings(msgspec.Struct, frozen=True):
    """What nodes say, in points, and how far it is believed: from 1 down to 0, where they say nothing."""

    points: Floats
    trust: Floats


READINGS: Final[StateKey[CongestionReadings]] = StateKey("congestion/told")


class CongestionArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of Congestion."""

    factor_max: Annotated[int, msgspec.Meta(ge=1, le=LARGEST)] = 100
    """The factor of a node that is as congested as can be."""
    compatible: bool = False
    """A node without a factor is not congested, and a factor that is not whole is none."""


class Congestion:
    """Ranks by what nodes say of themselves."""

    name: ClassVar = NAME
    Args: ClassVar = CongestionArgs
    reads: ClassVar = Reads(rows=frozenset({Facet.ANNOTATIONS}))

    def __init__(self, context: PluginContext, args: CongestionArgs) -> None:
        """Count factors up to the largest."""
        self._usage = context.usage
        self._most = float(args.factor_max)
        self._compatible = args.compatible

    def sign(self, pod: Pod) -> Hashable:
        """All pods look the same."""
        return None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Turn factors into points; what they are worth that are not believed is up to `normalize`."""
        if self._compatible:
            # A number does not tell how it was written. What is answered here is kept, and asked again for what changed only.
            return self._points(np.array([_whole(text) for text in nodes.annotations(ANNOTATION)])).astype(np.int64)
        factors = nodes.floats(ANNOTATION)
        known = np.isfinite(factors)
        trust = np.where(known, self._usage.dated(nodes, STAMP), 0.0)
        state[READINGS] = CongestionReadings(self._points(np.where(known, factors, 0.0)), trust)
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Count nodes as the mean of the feasible ones, as far as they are not believed."""
        if self._compatible:
            return scores
        told = state[READINGS]
        weights = np.where(feasible, told.trust, 0.0)
        total = float(weights.sum())
        # Where nobody tells anything, all are alike.
        mean = float(weights.dot(told.points)) // total if total > 0 else 0.0
        return np.floor(told.trust * told.points + (1.0 - told.trust) * mean).astype(np.int64)

    def _points(self, factors: Floats) -> Floats:
        points: Floats = np.floor(MAX_SCORE * (self._most - np.clip(factors, 0.0, self._most)) / self._most)
        return points


def _whole(text: str | None) -> float:
    """Read a factor as it was read at first: a whole number of 64 bits, as plain as can be; everything else is 0."""
    factor = int(text) if text is not None and _WHOLE.fullmatch(text) else 0
    return float(factor) if abs(factor) <= _LARGEST_WHOLE else 0.0


def environment(variables: Mapping[str, str]) -> AgentSettings:
    """Read CONGESTION_FACTOR_MAX; what is no positive whole number is told, and counts as not set."""
    said = variables.get("CONGESTION_FACTOR_MAX", "").strip()
    if not said:
        return {}, []
    if said.isascii() and said.isdigit() and len(said) <= DIGITS and 1 <= int(said) <= LARGEST:
        return {NAME: {"factorMax": int(said)}}, []
    words = f"CONGESTION_FACTOR_MAX is {said[:40]!r}; write a whole number from 1 to {LARGEST}; it was ignored"
    return {}, [words]
