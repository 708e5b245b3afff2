"""Passes pod events to the plugins that implement `PodFollower`, and stored histories to `HistoryPlugin`s."""

from collections.abc import Callable, Iterable

from lamina.model import events
from lamina.model.events import Event
from lamina.model.pod import Pod
from lamina.scheduling.contract.kept_state import HistoryPlugin
from lamina.scheduling.contract.points import Plugin, PodFollower
from lamina.scheduling.contract.status import Status, raised

FollowerErrorHandler = Callable[[Pod | None, str, str, Status], None]
"""Takes the pod (if known), the plugin's name, its method and the error as a status."""


class PodFollowers:
    """The followers among some plugins. Without followers, an event costs one check of an empty list."""

    def __init__(self, plugins: Iterable[Plugin], raised_by: FollowerErrorHandler) -> None:
        """Collect the followers, each once. *raised_by* is called when a follower raises."""
        distinct = {id(plugin): plugin for plugin in plugins}
        self._plugins = [plugin for plugin in distinct.values() if isinstance(plugin, PodFollower)]
        self._raised_by = raised_by

    def __len__(self) -> int:
        """Return the number of followers."""
        return len(self._plugins)

    def notice(self, event: Event, now: float) -> None:
        """Pass an event to the followers if it concerns them."""
        if not self._plugins:
            return
        match event:
            case events.PodSeen(pod):
                for plugin in self._plugins:
                    try:
                        plugin.pod_seen(pod, now)
                    except Exception as error:  # noqa: BLE001 - a plugin that raises must not stop the events
                        self._raised_by(pod, plugin.name, "pod_seen", raised(error))
            case events.PodGone(uid):
                for plugin in self._plugins:
                    try:
                        plugin.pod_gone(uid, now)
                    except Exception as error:  # noqa: BLE001 - as above
                        self._raised_by(None, plugin.name, "pod_gone", raised(error))
            case events.PluginHistoryLoaded(name, history):
                for plugin in self._plugins:
                    if plugin.name != name or not isinstance(plugin, HistoryPlugin):
                        continue
                    try:
                        plugin.adopt(history, now)
                    except Exception as error:  # noqa: BLE001 - a history that cannot be read is as good as none
                        self._raised_by(None, plugin.name, "adopt", raised(error))
            case _:
                return
