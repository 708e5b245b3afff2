"""Plugins whose state outlives a process or is part of recordings; those that measure availability are among them."""

from typing import Protocol, runtime_checkable

from lamina.qos.engine import QosEngine
from lamina.scheduling.contract.points import Plugin, PodFollower


@runtime_checkable
class HistoryPlugin(PodFollower, Protocol):
    """
    Can begin with what an earlier process measured.

    The host stores the history and loads it again; a `PluginHistoryLoaded` event passes it to the plugin.
    """

    def adopt(self, history: bytes, now: float) -> None:
        """Use *history* instead of what is known about the past; raise ValueError if it is invalid."""
        ...


@runtime_checkable
class SavedPlugin(Plugin, Protocol):
    """
    Has state that cannot be computed again from the cluster: it is part of the loop's snapshots.

    Plugins of the same name in several profiles must share this state (`PluginContext.shared`).
    """

    def save(self) -> bytes:
        """Return the complete state."""
        ...

    def load(self, saved: bytes) -> None:
        """Restore a state that `save` returned in another process; raise ValueError if it is invalid."""
        ...


@runtime_checkable
class QosPlugin(Plugin, Protocol):
    """Measures the availability of controllers; a host shows and stores its measurements."""

    qos: QosEngine
    """The measurements; another object after a `PluginHistoryLoaded` event. All profiles of a process share them."""
