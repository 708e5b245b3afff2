"""Builders and harnesses for tests, ours and those of plugin authors; a cluster for tests of Kubernetes clients."""

from typing import TYPE_CHECKING, Any

from lamina.testing.builders import a_digest, a_node, a_pod, an_image, held
from lamina.testing.loop_harness import LoopHarness, a_loop, a_profile

if TYPE_CHECKING:
    from lamina.testing.api_cluster import ApiCluster, apiserver

__all__ = [
    "ApiCluster",
    "LoopHarness",
    "a_digest",
    "a_loop",
    "a_node",
    "a_pod",
    "a_profile",
    "an_image",
    "apiserver",
    "held",
]


def __getattr__(name: str) -> Any:
    """Import the test cluster when it is used: it brings a server and a simulator."""
    if name in {"ApiCluster", "apiserver"}:
        from lamina.testing import api_cluster

        return getattr(api_cluster, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
