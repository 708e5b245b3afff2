"""
Scheduling agents: packages of plugins with one objective, which the extender serves.

The loop uses an agent's plugins like all others. The extender serves each verb of an agent under its own path: a
*predicate* is a filter plugin, a *priority* is a score plugin. Plugins return scores from 0 to 100, and extender
clients expect levels from 0 to 10; the agent's `levels` map scores to levels. Other distributions add agents through
the entry point group ``lamina.agents``.
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
"""Score divided by ten, rounded half up."""

AgentSettings = tuple[dict[str, dict[str, object]], list[str]]
"""Arguments by plugin name, as in a configuration, and a list of error messages."""


class SchedulingAgent(msgspec.Struct, frozen=True, kw_only=True):
    """Plugins with one objective, and the verbs under which the extender serves them."""

    name: str
    """The name that ``--agents`` accepts."""
    summary: str
    """One line that describes the objective."""
    plugins: tuple[PluginClass, ...]
    predicates: dict[str, str] = {}
    """Verb → name of a filter plugin."""
    priorities: dict[str, str] = {}
    """Verb → name of a score plugin."""
    environment: Callable[[Mapping[str, str]], AgentSettings] | None = None
    """Converts environment variables to arguments, for agents that were once configured that way."""
    levels: tuple[int, ...] = LINEAR
    """The level for each score from 0 to 100."""


def agent_faults(agent: SchedulingAgent) -> list[str]:
    """List everything that is wrong with an agent; empty when it can be served."""
    plugins = {plugin.name: plugin for plugin in agent.plugins if isinstance(getattr(plugin, "name", None), str)}
    wrong = [f"plugin {plugin!r} {fault}" for plugin in agent.plugins for fault in faults(plugin)]
    if not NAME.fullmatch(agent.name):
        wrong.append("its name must consist of lowercase letters, digits and inner dashes, 63 characters at most")
    if not agent.predicates and not agent.priorities:
        wrong.append("has neither predicates nor priorities")
    for kind, verbs, point in (
        ("predicate", agent.predicates, "filter"),
        ("priority", agent.priorities, "score"),
    ):
        for verb, plugin in verbs.items():
            if not NAME.fullmatch(verb):
                wrong.append(
                    f"the name of {kind} {verb!r} must consist of lowercase letters, digits and inner dashes, "
                    "63 characters at most"
                )
            if plugin not in plugins:
                wrong.append(f"{kind} {verb!r} names plugin {plugin!r}, which is not among its plugins")
            elif point not in points_of(plugins[plugin]):
                wrong.append(f"{kind} {verb!r} names plugin {plugin!r}, which has no `{point}`")
    if len(agent.levels) != POINTS or not all(0 <= level <= HIGHEST for level in agent.levels):
        wrong.append(f"`levels` must have {POINTS} levels, each from 0 to {HIGHEST}: one for each score")
    return wrong


class SchedulingAgentRegistry:
    """Scheduling agents by name, each verified when it is registered."""

    def __init__(self, *agents: SchedulingAgent) -> None:
        """Register *agents*."""
        self._agents: dict[str, SchedulingAgent] = {}
        self.broken: dict[str, str] = {}
        """Unusable entry points: name → what is wrong and what to do."""
        for agent in agents:
            self.register(agent)

    def register(self, agent: SchedulingAgent) -> None:
        """Register an agent. Raise WiringError that lists everything wrong with it."""
        if not isinstance(agent, SchedulingAgent):
            raise WiringError(f"agent {agent!r:.80} is not a SchedulingAgent")
        wrong = agent_faults(agent)
        if not wrong and agent.name in self._agents:
            wrong = ["is registered twice"]
        taken = {verb for one in self._agents.values() for verb in (*one.predicates, *one.priorities)}
        wrong.extend(
            f"verb {verb!r} belongs to another agent"
            for verb in dict.fromkeys((*agent.predicates, *agent.priorities))
            if verb in taken
        )
        if wrong:
            raise WiringError(f"agent {agent.name!r}: {'; '.join(wrong)}")
        self._agents[agent.name] = agent

    def load_entry_points(self) -> None:
        """Register the agents that other distributions declare under ``lamina.agents``."""
        self.broken.update(from_entry_points(ENTRY_POINTS, self.register))

    def why_not(self, name: str) -> str:
        """Return why there is no agent of this name, and what to try."""
        return self.broken.get(name) or f"there is no agent {shown(name)}; {suggest(name, self)}"

    def __contains__(self, name: object) -> bool:
        """Return whether an agent of this name exists."""
        return name in self._agents

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in order of registration."""
        return iter(self._agents)

    def __getitem__(self, name: str) -> SchedulingAgent:
        """Return the agent of that name."""
        return self._agents[name]
