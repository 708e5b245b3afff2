"""
The scheduling agent `layers`: LayerLocality for whoever is asked for eleven levels instead of a hundred points.

    level = 10 - log2(1 + 10 · E/T)     rounded; E and T as in the score, so that E/T = 100/points - 1

Tenths of the points would do near the top and nowhere else: a node that is ready in two minutes and one that takes four
would be alike. On this scale every level is about a doubling of the wait: with T at its default of 5 seconds 10 means
ready, 9 half a second, 7 four seconds, 5 a quarter of a minute, 3 a minute, 0 eight minutes and more.
"""

import math
from typing import Final

from lamina.scheduling.contract.scheduling_agent import HIGHEST, POINTS, SchedulingAgent
from lamina.scheduling.plugins.locality.layer_locality.plugin import LayerLocality

FINENESS: Final = 10
"""The first level is gone after the tenth part of T."""


def level(points: int) -> int:
    """Return the level for a score."""
    if points <= 0:
        return 0
    waits = (POINTS - 1) / points - 1
    return max(0, round(HIGHEST - math.log2(1 + FINENESS * waits)))


AGENT: Final = SchedulingAgent(
    name="layers",
    summary="Prefers nodes where the pod's images are ready soonest.",
    plugins=(LayerLocality,),
    priorities={"layers": LayerLocality.name},
    levels=tuple(level(points) for points in range(POINTS)),
)
