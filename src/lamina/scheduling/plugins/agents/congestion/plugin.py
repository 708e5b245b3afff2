"""
Congestion: prefer nodes whose annotation `congestion-factor` is low. What congests a node is up to whoever annotates it.

    points = 100 · (1 - factor / factorMax), rounded down        level = 10 · (1 - factor / factorMax), rounded half up

A factor counts from 0 to *factorMax*, and what lies beyond either end counts as that end. Levels come from the points: since
these are rounded down, tenths of them rounded half up are what the second formula says, for every factor.

A node that says nothing, or no number, counts as the mean of the feasible ones that do: neither a refuge nor avoided. As it
was at first (*compatible*), it counts as not congested at all.
"""

from collections.abc import Hashable, Mapping
from typing import Annotated, ClassVar, Final

import msgspec
import numpy as np

from lamina.model.pod import Pod
from lamina.scheduling.framework.agent import Settings
from lamina.scheduling.framework.columns import Bools, Ints
from lamina.scheduling.framework.context import Context
from lamina.scheduling.framework.cycle_state import CycleState
from lamina.scheduling.framework.points import MAX_SCORE, Reads
from lamina.scheduling.framework.registry import Args
from lamina.scheduling.framework.rowlog import Facet
from lamina.scheduling.framework.view import NodeView

NAME: Final = "Congestion"
ANNOTATION: Final = "congestion-factor"
LARGEST: Final = 1_000_000_000
DIGITS: Final = len(str(LARGEST))
UNKNOWN: Final = -1


class CongestionArgs(Args, frozen=True, kw_only=True, rename="camel"):
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

    def __init__(self, context: Context, args: CongestionArgs) -> None:
        """Count factors up to the largest."""
        self._most = float(args.factor_max)
        self._compatible = args.compatible

    def sign(self, pod: Pod) -> Hashable:
        """All pods look the same."""
        return None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Turn factors into points; negative where there is none."""
        factors = nodes.floats(ANNOTATION)
        known = np.isfinite(factors)
        if self._compatible:
            known &= factors == np.floor(factors)
        free = self._most - np.clip(np.where(known, factors, 0.0), 0.0, self._most)
        points = np.floor(MAX_SCORE * free / self._most)
        return np.where(known | self._compatible, points, UNKNOWN).astype(np.int64)

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Count nodes of which nothing is known as the mean of the feasible ones of which something is."""
        unknown = scores == UNKNOWN
        if not unknown.any():
            return scores
        told = scores[feasible & ~unknown]
        # Where nobody tells anything, all are alike.
        mean = int(told.sum()) // len(told) if len(told) else 0
        return np.where(unknown, mean, scores)


def environment(variables: Mapping[str, str]) -> Settings:
    """Read CONGESTION_FACTOR_MAX; what is no positive whole number is told, and counts as not set."""
    said = variables.get("CONGESTION_FACTOR_MAX", "").strip()
    if not said:
        return {}, []
    if said.isascii() and said.isdigit() and len(said) <= DIGITS and 1 <= int(said) <= LARGEST:
        return {NAME: {"factorMax": int(said)}}, []
    words = f"CONGESTION_FACTOR_MAX is {said[:40]!r}: write a whole number from 1 to {LARGEST}; it was ignored"
    return {}, [words]
