"""A desk whose loop runs one of the profiles that come along: to see what they make of a story."""

import random

from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.runtime.explanation import Detail
from lamina.testing import LoopHarness

KNOWN = registry(entry_points=False)


def a_desk(profile: str, *, seed: int = 0, detail: Detail = "full") -> LoopHarness:
    """Put a desk up; *seed* decides between nodes of equal score, as in a simulation."""
    configuration = named(profile, KNOWN)
    settings = LoopSettings(backoff=configuration.backoff, detail=detail)
    return LoopHarness(Loop(configuration.profiles, random.Random(seed).randrange, settings))
