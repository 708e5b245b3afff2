"""Plugins that asked to be woken at a time."""

from collections.abc import Iterator

from lamina.scheduling.framework.points import TimedPlugin
from lamina.scheduling.framework.status import raised
from lamina.scheduling.loop.state import LoopState


class Timers:
    """Wakes the timed plugins of all profiles; a loop without any pays for an empty list."""

    def __init__(self, state: LoopState) -> None:
        """Find the plugins that can be woken; one that two profiles share is woken once."""
        self._state = state
        self.plugins: list[TimedPlugin] = list(_timed(state))

    def next_time(self) -> float | None:
        """Return the next time a plugin asked for. A time that has passed is not asked for again."""
        times = [plugin.wake_at for plugin in self.plugins]
        return min((at for at in times if at is not None and at > self._state.now), default=None)

    def pass_time(self, now: float) -> None:
        """Wake the plugins whose time has come; pods they refused are tried again if they say so."""
        for plugin in self.plugins:
            at = plugin.wake_at
            if at is None or at > now:
                continue
            try:
                again = plugin.wake(now)
            except Exception as error:  # noqa: BLE001 - a plugin that raises must not stop the loop
                self._state.plugin_raised(None, plugin.name, "wake", raised(error))
                again = True
            if again:
                self._state.queue.retry(plugin.name)


def _timed(state: LoopState) -> Iterator[TimedPlugin]:
    seen: set[int] = set()
    for profile in state.profiles.values():
        for plugin in profile.plugins.values():
            if isinstance(plugin, TimedPlugin) and id(plugin) not in seen:
                seen.add(id(plugin))
                yield plugin
