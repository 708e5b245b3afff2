"""A desk whose loop runs one of the profiles that come along: to see what they make of a story."""

import random

from lamina.scheduling.config.named import named
from lamina.scheduling.framework.explain import Detail
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.state import Settings
from lamina.scheduling.plugins.in_tree import registry
from lamina.testing import Desk

KNOWN = registry(entry_points=False)


def a_desk(profile: str, *, seed: int = 0, detail: Detail = "full") -> Desk:
    """Put a desk up; *seed* decides between nodes of equal score, as in a simulation."""
    configuration = named(profile, KNOWN)
    settings = Settings(backoff=configuration.backoff, detail=detail)
    return Desk(Loop(configuration.profiles, random.Random(seed).randrange, settings))
