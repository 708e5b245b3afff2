"""
Real Kubernetes programs on one machine, for tests and for trying things out: built once, started in seconds.

Imports nothing of Lamina, so that the tested code cannot confirm its own mistakes. See docs/testbed.md.
"""

from testbed.bed import Testbed
from testbed.errors import (
    BuildError,
    KubectlError,
    MissingError,
    PartError,
    RefusedError,
    RootError,
    TestbedError,
)
from testbed.nodes import Node

__all__ = [
    "BuildError",
    "KubectlError",
    "MissingError",
    "Node",
    "PartError",
    "RefusedError",
    "RootError",
    "Testbed",
    "TestbedError",
]
