"""A loop harness that runs one of the named profiles."""

import random

from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.runtime.explanation import Detail
from lamina.testing import LoopHarness

KNOWN = registry(entry_points=False)


def a_harness(profile: str, *, seed: int = 0, detail: Detail = "full") -> LoopHarness:
    """Return a harness; *seed* breaks ties between nodes of equal score, as in a simulation."""
    configuration = named(profile, KNOWN)
    settings = LoopSettings(backoff=configuration.backoff, detail=detail)
    return LoopHarness(Loop(configuration.profiles, random.Random(seed).randrange, settings))
