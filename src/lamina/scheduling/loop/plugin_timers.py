"""Wake-up times of plugins that implement `TimedPlugin`."""

import math
from collections.abc import Iterator

from lamina.scheduling.contract.points import TimedPlugin
from lamina.scheduling.contract.status import raised
from lamina.scheduling.loop.loop_state import LoopState


class PluginTimers:
    """Wakes the timed plugins of all profiles. Without timed plugins it costs one check of an empty list."""

    def __init__(self, state: LoopState) -> None:
        """Collect the timed plugins; a plugin shared by two profiles is woken once."""
        self._state = state
        self.plugins: list[TimedPlugin] = list(_timed(state))
        self._served: dict[str, float] = {}
        """For each plugin, the `wake_at` value it was last woken for."""

    def next_time(self) -> float | None:
        """Return the earliest future `wake_at` in seconds, or None."""
        times = [self._time_of(plugin) for plugin in self.plugins]
        return min((at for at in times if at is not None and at > self._state.now), default=None)

    def pass_time(self, now: float) -> None:
        """Wake the plugins that are due, and retry the pods they refused if `wake` returns True."""
        for plugin in self.plugins:
            at = self._time_of(plugin)
            if at is None or at > now or at == self._served.get(plugin.name):
                continue
            self._served[plugin.name] = at
            try:
                again = plugin.wake(now)
            except Exception as error:  # noqa: BLE001 - a plugin that raises must not stop the loop
                self._state.plugin_raised(None, plugin.name, "wake", raised(error))
                again = True
            if again:
                self._state.queue.retry(plugin.name)

    def _time_of(self, plugin: TimedPlugin) -> float | None:
        """Return a plugin's `wake_at`; None for anything but a finite number."""
        try:
            at: object = plugin.wake_at
        except Exception as error:  # noqa: BLE001 - a plugin that raises must not stop the loop
            self._state.plugin_raised(None, plugin.name, "wake_at", raised(error))
            return None
        return float(at) if isinstance(at, int | float) and math.isfinite(at) else None


def _timed(state: LoopState) -> Iterator[TimedPlugin]:
    seen: set[int] = set()
    for profile in state.profiles.values():
        for plugin in profile.plugins.values():
            if isinstance(plugin, TimedPlugin) and id(plugin) not in seen:
                seen.add(id(plugin))
                yield plugin
