"""LayerLocality: prefer nodes where the pod could start soonest, as far as its images go."""

from lamina.scheduling.plugins.locality.layer_locality.args import Barrier, LayerLocalityArgs
from lamina.scheduling.plugins.locality.layer_locality.plugin import LayerLocality

__all__ = ["Barrier", "LayerLocality", "LayerLocalityArgs"]
