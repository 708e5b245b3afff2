"""
How layers influenced a decision: the explanation that LayerLocality adds to it.

The plugin creates it. The trace, the annotation on the pod, the metrics and `lamina explain` read it; the framework
does not know it. It is in this package because all of them may import it.
"""

from typing import Literal

import msgspec


class LayerState(msgspec.Struct, frozen=True):
    """One layer of the pod's images, on the chosen node."""

    digest: str
    size: int
    """Compressed bytes."""
    state: Literal["present", "arriving", "missing"]
    seconds: float = 0.0
    """Seconds until an arriving layer is there."""


class Savings(msgspec.Struct, frozen=True):
    """What one node saves compared with another; negative when the other node would have been better."""

    seconds: float
    bytes: int


class LocalityExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """How layers influenced one decision."""

    layers: tuple[LayerState, ...]
    """Bottom first, image by image."""
    seconds: float
    """Readiness estimate: seconds until the pod's images are ready on the chosen node."""
    download: int
    """Bytes that the chosen node has to download for the pod."""
    against_mean: Savings | None = None
    """Compared with the mean over the feasible nodes with known layers."""
    against_runner_up: Savings | None = None
