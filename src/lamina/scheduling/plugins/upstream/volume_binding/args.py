"""Arguments of VolumeBinding."""

from typing import Annotated, Any

import msgspec

from lamina.scheduling.contract.plugin_registry import PluginArgs


class VolumeBindingArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of VolumeBinding."""

    bind_timeout_seconds: Annotated[int, msgspec.Meta(ge=0)] = 600
    """Seconds to wait until the claims of a pod are bound."""
    shape: list[Any] | None = None  # Any: refused, whatever it contains

    def __post_init__(self) -> None:
        """Reject what upstream rejects without the feature gate StorageCapacityScoring."""
        if self.shape is not None:
            raise ValueError(
                "unexpected field `shape`, remove it: it belongs to the feature StorageCapacityScoring, which is off by "
                "default and not implemented"
            )
