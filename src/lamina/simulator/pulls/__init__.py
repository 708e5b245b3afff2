"""Images of a simulated node: the store, the puller with download and unpacking, and image garbage collection."""

from lamina.simulator.pulls.image_store import NodeImageStore
from lamina.simulator.pulls.layer_source import LayerSource, LayerSources
from lamina.simulator.pulls.pull_request import ImagePullRequest, PullWatcher, RemovalReason
from lamina.simulator.pulls.puller import NO_SPACE, TOO_MANY, Puller
from lamina.simulator.pulls.runtime_spec import CONTAINERD, DiskSpec, RuntimeSpec

__all__ = [
    "CONTAINERD",
    "NO_SPACE",
    "TOO_MANY",
    "DiskSpec",
    "ImagePullRequest",
    "LayerSource",
    "LayerSources",
    "NodeImageStore",
    "PullWatcher",
    "Puller",
    "RemovalReason",
    "RuntimeSpec",
]
