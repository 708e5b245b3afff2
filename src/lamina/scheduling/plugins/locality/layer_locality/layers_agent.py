"""
Scheduling agent `layers`: LayerLocality for the extender, with a logarithmic scale of levels.

    level = 10 - log2(1 + 10 · E/T)     rounded; E and T as in the score, so that E/T = 100/score - 1

Tenths of the score would only work near the top: a node that is ready in two minutes and one that takes four would get
the same level. On this scale each level is about a doubling of the wait. With T at its default of 5 seconds:

    level     10     9       7     5      3      0
    wait      none   0.5 s   4 s   15 s   60 s   480 s or more
"""

import math
from typing import Final

from lamina.scheduling.contract.scheduling_agent import HIGHEST, POINTS, SchedulingAgent
from lamina.scheduling.plugins.locality.layer_locality.plugin import LayerLocality

FINENESS: Final = 10
"""The first level is lost at a tenth of T."""


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
