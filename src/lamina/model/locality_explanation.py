"""
What layers had to do with a decision: the part that LayerLocality adds to it.

The plugin makes it. The trace, the note on the pod, the metrics and `lamina explain` read it; the framework does not know
it. It is here because this is the one room that all of them may import.
"""

from typing import Literal

import msgspec


class LayerState(msgspec.Struct, frozen=True):
    """One layer of the pod's images, on the node that was chosen."""

    digest: str
    size: int
    """Compressed bytes."""
    state: Literal["present", "arriving", "missing"]
    seconds: float = 0.0
    """Until it is there, for one that is arriving."""


class Savings(msgspec.Struct, frozen=True):
    """What choosing one node rather than another saves; negative when the other would have been better in this."""

    seconds: float
    bytes: int


class LocalityExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What layers had to do with a decision."""

    layers: tuple[LayerState, ...]
    """Bottom first, image by image."""
    seconds: float
    """Until the pod's images are ready on the chosen node, as it was estimated."""
    download: int
    """Bytes the node has to download for it."""
    against_mean: Savings | None = None
    """Compared with the mean of the feasible nodes of which anything is known."""
    against_runner_up: Savings | None = None
