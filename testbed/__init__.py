"""
Real Kubernetes parts on one machine, for tests and for trying things out: built once, started in seconds.

Depends on nothing of Lamina, so that what is tested cannot vouch for itself. See docs/testbed.md.
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
