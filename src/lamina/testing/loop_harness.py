"""Test harness for the scheduling loop: builds profiles by plugin name, executes commands at once, records them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from lamina.model import events
from lamina.model.decision import Decision
from lamina.model.events import Event
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import Bind, Command, ReportUnschedulable, WakeAt
from lamina.scheduling.contract.plugin_registry import PluginArgs, PluginRegistry, points_of
from lamina.scheduling.contract.points import Plugin
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.plugin_context import PluginContext

DEFAULT = (
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeResourcesFit",
    "ImageLocality",
    "LayerLocality",
    "DefaultBinder",
)


def first(_: int) -> int:
    """Break ties in favour of the first node."""
    return 0


def a_profile(
    context: PluginContext,
    plugins: Sequence[str | type[Any]] = DEFAULT,
    *,
    name: str = "default-scheduler",
    weights: Mapping[str, int] | None = None,
    args: Mapping[str, PluginArgs] | None = None,
    known: PluginRegistry | None = None,
) -> Profile:
    """
    Build a profile; each plugin runs at every extension point that it implements.

    Plugin classes are registered, and thereby validated, first.
    """
    available = known or registry(entry_points=False)
    made: list[Plugin] = []
    for plugin in plugins:
        if not isinstance(plugin, str):
            available.register(plugin)
            plugin = plugin.name
        made.append(available.make(plugin, context, (args or {}).get(plugin)))
    by_point: dict[str, list[Plugin]] = {}
    for one in made:
        for point in points_of(one):
            by_point.setdefault(point, []).append(one)
    return Profile(name, by_point, {one.name: (weights or {}).get(one.name, 1) for one in made})


def a_loop(
    plugins: Sequence[str | type[Any]] = DEFAULT,
    *,
    weights: Mapping[str, int] | None = None,
    args: Mapping[str, PluginArgs] | None = None,
    settings: LoopSettings | None = None,
    pick: Callable[[int], int] = first,
) -> Loop:
    """Build a loop with one profile."""

    def make(context: PluginContext) -> dict[str, Profile]:
        profile = a_profile(context, plugins, weights=weights, args=args)
        return {profile.name: profile}

    return Loop(make, pick, settings)


class LoopHarness:
    """
    Executes the commands of a loop at once and successfully, and records them.

    The harness confirms a binding with the next events. Tests of failures and delays call `loop` directly.
    """

    def __init__(self, loop: Loop | None = None) -> None:
        """Use this loop, or one with the default plugins at full detail."""
        self.loop = loop or a_loop(settings=LoopSettings(detail="full"))
        self.bound: dict[str, str] = {}
        self.decisions: dict[str, Decision] = {}
        self.pending: dict[str, str] = {}
        self.wake_at: float | None = None
        self.commands: list[Command] = []

    def tell(self, *happened: Event) -> list[Command]:
        """Feed events and execute the resulting commands, until there are none."""
        executed: list[Command] = []
        todo: Iterable[Event] = happened
        while todo:
            commands = self.loop.feed(*todo)
            executed.extend(commands)
            todo = [answer for command in commands if (answer := self._execute(command)) is not None]
        self.commands.extend(executed)
        return executed

    def see(self, *pods: Pod) -> list[Command]:
        """Feed added or updated pods."""
        return self.tell(*(events.PodSeen(pod) for pod in pods))

    def at(self, now: float) -> list[Command]:
        """Advance the time to *now*."""
        return self.tell(events.TimePassed(now))

    def _execute(self, command: Command) -> Event | None:
        match command:
            case Bind(pod, node, decision):
                self.bound[pod.name] = node
                self.pending.pop(pod.name, None)
                if decision is not None:
                    self.decisions[pod.name] = decision
                return events.PodSeen(msgspec.structs.replace(pod, node_name=node))
            case ReportUnschedulable(pod, decision):
                self.pending[pod.name] = decision.message
                self.decisions[pod.name] = decision
            case WakeAt(at):
                self.wake_at = at
        return None
