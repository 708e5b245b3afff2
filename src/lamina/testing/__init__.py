"""Builders and harnesses for tests, ours and those of plugin authors."""

from lamina.testing.builders import a_digest, a_node, a_pod, an_image, held
from lamina.testing.desk import Desk, a_loop, a_profile

__all__ = ["Desk", "a_digest", "a_loop", "a_node", "a_pod", "a_profile", "an_image", "held"]
