"""LayerLocality: prefers nodes where the pod's images are ready soonest."""

from lamina.scheduling.plugins.locality.layer_locality.args import Barrier, LayerLocalityArgs
from lamina.scheduling.plugins.locality.layer_locality.plugin import LayerLocality

__all__ = ["Barrier", "LayerLocality", "LayerLocalityArgs"]
