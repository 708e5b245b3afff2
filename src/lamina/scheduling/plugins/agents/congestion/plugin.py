"""
Congestion: prefers nodes whose annotation `congestion-factor` is low. The annotator defines what congestion means.

    score = 100 · (1 - factor / factorMax), rounded down         level = 10 · (1 - factor / factorMax), rounded half up

Factors are clipped to 0..*factorMax*. Levels are derived from scores: since scores are rounded down, their tenths
rounded half up equal the second formula for every factor.

A node without a valid factor gets the mean of the feasible nodes with one, so that it is neither preferred nor
avoided. A node with an outdated factor moves towards that mean as trust drops (`ClusterUsage.dated`). A factor without
a time stamp (``lamina.dev/congestion-observed-at``) never becomes outdated.

With *compatible*, the plugin behaves like the original: a node without an integer factor has factor 0, and factors
never become outdated.
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
"""Time of the factor; `lamina annotate congestion` writes it."""
LARGEST: Final = 1_000_000_000
DIGITS: Final = len(str(LARGEST))
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,64}")
_LARGEST_WHOLE: Final = 2**63 - 1


class CongestionReadings(msgspec.Struct, frozen=True):
    """Scores from annotations with the trust in each, from 1 down to 0 (no factor)."""

    points: Floats
    trust: Floats


READINGS: Final[StateKey[CongestionReadings]] = StateKey("congestion/readings")


class CongestionArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of Congestion."""

    factor_max: Annotated[int, msgspec.Meta(ge=1, le=LARGEST)] = 100
    """The factor of a fully congested node."""
    compatible: bool = False
    """A node without a factor, or with a factor that is not an integer, has factor 0."""


class Congestion:
    """Scores nodes by their congestion annotation."""

    name: ClassVar = NAME
    Args: ClassVar = CongestionArgs
    reads: ClassVar = Reads(rows=frozenset({Facet.ANNOTATIONS}))

    def __init__(self, context: PluginContext, args: CongestionArgs) -> None:
        """Use the maximum factor of *args*."""
        self._usage = context.usage
        self._most = float(args.factor_max)
        self._compatible = args.compatible

    def sign(self, pod: Pod) -> Hashable:
        """Return None: results do not depend on the pod."""
        return None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Convert factors to scores; `normalize` replaces their untrusted part."""
        if self._compatible:
            # Parsed from text, because a parsed number does not show whether it was written as an integer.
            return self._points(np.array([_whole(text) for text in nodes.annotations(ANNOTATION)])).astype(np.int64)
        factors = nodes.floats(ANNOTATION)
        known = np.isfinite(factors)
        trust = np.where(known, self._usage.dated(nodes, STAMP), 0.0)
        state[READINGS] = CongestionReadings(self._points(np.where(known, factors, 0.0)), trust)
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Mix in the mean of the feasible nodes where trust is below 1."""
        if self._compatible:
            return scores
        readings = state[READINGS]
        weights = np.where(feasible, readings.trust, 0.0)
        total = float(weights.sum())
        # Without any factor, all nodes get the same score.
        mean = float(weights.dot(readings.points)) // total if total > 0 else 0.0
        return np.floor(readings.trust * readings.points + (1.0 - readings.trust) * mean).astype(np.int64)

    def _points(self, factors: Floats) -> Floats:
        points: Floats = np.floor(MAX_SCORE * (self._most - np.clip(factors, 0.0, self._most)) / self._most)
        return points


def _whole(text: str | None) -> float:
    """Parse a factor like the original: a plain 64-bit integer; everything else is 0."""
    factor = int(text) if text is not None and _WHOLE.fullmatch(text) else 0
    return float(factor) if abs(factor) <= _LARGEST_WHOLE else 0.0


def environment(variables: Mapping[str, str]) -> AgentSettings:
    """Read CONGESTION_FACTOR_MAX; report and ignore a value that is not a positive integer."""
    said = variables.get("CONGESTION_FACTOR_MAX", "").strip()
    if not said:
        return {}, []
    if said.isascii() and said.isdigit() and len(said) <= DIGITS and 1 <= int(said) <= LARGEST:
        return {NAME: {"factorMax": int(said)}}, []
    words = f"CONGESTION_FACTOR_MAX is {said[:40]!r}; write an integer from 1 to {LARGEST}; it was ignored"
    return {}, [words]
