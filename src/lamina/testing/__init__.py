"""Builders and harnesses for tests, ours and those of plugin authors."""

from lamina.testing.builders import a_digest, a_node, a_pod, an_image, held
from lamina.testing.loop_harness import LoopHarness, a_loop, a_profile

__all__ = ["LoopHarness", "a_digest", "a_loop", "a_node", "a_pod", "a_profile", "an_image", "held"]
