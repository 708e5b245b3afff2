"""Tests against real parts of Kubernetes take their control planes from the testbed's own pytest plugin."""

from testbed.fixtures import (
    bed_factory,
    containerd_factory,
    control_plane,
    pytest_collection_finish,
    pytest_configure,
    pytest_runtest_setup,
    registry_server,
)

__all__ = [
    "bed_factory",
    "containerd_factory",
    "control_plane",
    "pytest_collection_finish",
    "pytest_configure",
    "pytest_runtest_setup",
    "registry_server",
]
