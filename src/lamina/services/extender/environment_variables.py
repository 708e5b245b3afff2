"""
The environment variables of an extender: those of the server, and those that an agent had before it had arguments.

    HTTP_PORT    the port; on which address is the business of flags and file
    LOG_LEVEL    TRACE, DEBUG, INFO, WARNING, ERROR or ALERT, in any case; anything else is complained about and is INFO

What they say is told as data. Nothing here looks at the process's own environment: who calls hands it over.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from lamina.model.plain import shown
from lamina.scheduling.contract.scheduling_agent import SchedulingAgent
from lamina.services.extender.log_level import LEVELS, LogLevel, level_named

HTTP_PORT: Final = "HTTP_PORT"
LOG_LEVEL: Final = "LOG_LEVEL"


class EnvironmentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the environment says; None where it says nothing."""

    port: str | None = None
    """As it stands there: where a flag says more it does not matter, and need be no port."""
    loudness: LogLevel | None = None
    arguments: dict[str, dict[str, object]] = {}
    """By plugin, named as in a configuration."""
    complaints: tuple[str, ...] = ()
    """What was passed over, in words."""


def read_environment(variables: Mapping[str, str], agents: Sequence[SchedulingAgent]) -> EnvironmentSettings:
    """Read what concerns the server and these agents."""
    arguments: dict[str, dict[str, object]] = {}
    complaints: list[str] = []
    loudness = _loudness(variables, complaints)
    for agent in agents:
        if agent.environment is not None:
            found, wrong = agent.environment(variables)
            for plugin, values in found.items():
                arguments.setdefault(plugin, {}).update(values)
            complaints.extend(f"agent {agent.name}: {one}" for one in wrong)
    # Set to nothing is how a manifest says "not set".
    port = variables.get(HTTP_PORT, "").strip() or None
    return EnvironmentSettings(port=port, loudness=loudness, arguments=arguments, complaints=tuple(complaints))


def _loudness(variables: Mapping[str, str], complaints: list[str]) -> LogLevel | None:
    text = variables.get(LOG_LEVEL)
    if text is None:
        return None
    found = level_named(text)
    if found is None:
        what = f"{shown(text)} is no level" if text.strip() else "is empty"
        complaints.append(f"{LOG_LEVEL}: {what}, so it is INFO; choose from {', '.join(LEVELS)}")
        return LogLevel()
    return found
