"""
A scheduling agent: a small package of plugins with one objective, as the extender serves it.

In a scheduler its plugins are plugins like any other. In the extender each of its verbs is an address: a *predicate* is a
plugin that filters, a *priority* one that scores. Plugins give points from 0 to 100; whoever asks an extender gets levels
from 0 to 10, and an agent says how one becomes the other. Agents of other distributions are found by the entry point group
``lamina.agents``.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from lamina.model.conversion import suggest
from lamina.model.errors import WiringError
from lamina.model.plain import shown
from lamina.scheduling.contract.plugin_registry import PluginClass, faults, from_entry_points, points_of

ENTRY_POINTS: Final = "lamina.agents"
NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
HIGHEST: Final = 10
POINTS: Final = 101
LINEAR: Final = tuple((points + 5) // 10 for points in range(POINTS))
"""Levels that are tenths of the points, rounded half up."""

AgentSettings = tuple[dict[str, dict[str, object]], list[str]]
"""Arguments by plugin, named as in a configuration, and complaints in words."""


class SchedulingAgent(msgspec.Struct, frozen=True, kw_only=True):
    """A package of plugins with one objective."""

    name: str
    """What ``--agents`` calls it."""
    summary: str
    """What it is for, in one line."""
    plugins: tuple[PluginClass, ...]
    predicates: dict[str, str] = {}
    """Verb → the plugin that filters."""
    priorities: dict[str, str] = {}
    """Verb → the plugin that scores."""
    environment: Callable[[Mapping[str, str]], AgentSettings] | None = None
    """Reads environment variables, where an agent had them before it had arguments."""
    levels: tuple[int, ...] = LINEAR
    """The level for each number of points."""


def agent_faults(agent: SchedulingAgent) -> list[str]:
    """List everything that is wrong with an agent; empty when it can be served."""
    plugins = {plugin.name: plugin for plugin in agent.plugins if isinstance(getattr(plugin, "name", None), str)}
    wrong = [f"plugin {plugin!r} {fault}" for plugin in agent.plugins for fault in faults(plugin)]
    if not NAME.fullmatch(agent.name):
        wrong.append("its name may have small letters, digits and dashes between them")
    if not agent.predicates and not agent.priorities:
        wrong.append("has neither predicates nor priorities")
    for kind, verbs, point in (
        ("predicate", agent.predicates, "filter"),
        ("priority", agent.priorities, "score"),
    ):
        for verb, plugin in verbs.items():
            if not NAME.fullmatch(verb):
                wrong.append(f"the name of {kind} {verb!r} may have small letters, digits and dashes between them")
            if plugin not in plugins:
                wrong.append(f"{kind} {verb!r} names plugin {plugin!r}, which is not among its plugins")
            elif point not in points_of(plugins[plugin]):
                wrong.append(f"{kind} {verb!r} names plugin {plugin!r}, which has no `{point}`")
    if len(agent.levels) != POINTS or not all(0 <= level <= HIGHEST for level in agent.levels):
        wrong.append(f"`levels` has to have a level from 0 to {HIGHEST} for each of 0 to {POINTS - 1} points")
    return wrong


class SchedulingAgentRegistry:
    """Agents by name, each verified when it is registered."""

    def __init__(self, *agents: SchedulingAgent) -> None:
        """Register these."""
        self._agents: dict[str, SchedulingAgent] = {}
        self.broken: dict[str, str] = {}
        """Entry points that lead to no agent that can be served: by name, why and what to do."""
        for agent in agents:
            self.register(agent)

    def register(self, agent: SchedulingAgent) -> None:
        """Take an agent in, or say everything that is wrong with it."""
        if not isinstance(agent, SchedulingAgent):
            raise WiringError(f"agent {agent!r:.80} is no Agent")
        wrong = agent_faults(agent)
        if not wrong and agent.name in self._agents:
            wrong = ["is registered twice"]
        taken = {verb for one in self._agents.values() for verb in (*one.predicates, *one.priorities)}
        wrong.extend(
            f"verb {verb!r} is another agent's"
            for verb in dict.fromkeys((*agent.predicates, *agent.priorities))
            if verb in taken
        )
        if wrong:
            raise WiringError(f"agent {agent.name!r}: {'; '.join(wrong)}")
        self._agents[agent.name] = agent

    def load_entry_points(self) -> None:
        """Register what other installed distributions declare under ``lamina.agents``."""
        self.broken.update(from_entry_points(ENTRY_POINTS, self.register))

    def why_not(self, name: str) -> str:
        """Say why there is no agent of this name, and what to try."""
        return self.broken.get(name) or f"there is no agent {shown(name)}; {suggest(name, self)}"

    def __contains__(self, name: object) -> bool:
        """Say whether there is an agent of this name."""
        return name in self._agents

    def __iter__(self) -> Iterator[str]:
        """Go through the names in the order of registration."""
        return iter(self._agents)

    def __getitem__(self, name: str) -> SchedulingAgent:
        """Return the agent of that name."""
        return self._agents[name]
