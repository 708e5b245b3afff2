"""
Environment variables of an extender: those of the server, and old ones of scheduling agents.

    HTTP_PORT    the port; the address comes from flags or the file
    LOG_LEVEL    TRACE, DEBUG, INFO, WARNING, ERROR or ALERT, in any case; other values give a warning and INFO

This module does not read the process's environment: the caller passes the variables.
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
    """Settings from the environment; None where a variable is not set."""

    port: str | None = None
    """The raw text: it need not be a valid port if a flag overrides it."""
    log_level: LogLevel | None = None
    arguments: dict[str, dict[str, object]] = {}
    """Arguments by plugin, named as in a configuration."""
    complaints: tuple[str, ...] = ()
    """Warnings about values that were ignored."""


def read_environment(variables: Mapping[str, str], agents: Sequence[SchedulingAgent]) -> EnvironmentSettings:
    """Return the settings of the server and of these scheduling agents."""
    arguments: dict[str, dict[str, object]] = {}
    complaints: list[str] = []
    log_level = _log_level(variables, complaints)
    for agent in agents:
        if agent.environment is not None:
            found, wrong = agent.environment(variables)
            for plugin, values in found.items():
                arguments.setdefault(plugin, {}).update(values)
            complaints.extend(f"agent {agent.name}: {one}" for one in wrong)
    # Manifests often set a variable to the empty string instead of removing it.
    port = variables.get(HTTP_PORT, "").strip() or None
    return EnvironmentSettings(port=port, log_level=log_level, arguments=arguments, complaints=tuple(complaints))


def _log_level(variables: Mapping[str, str], complaints: list[str]) -> LogLevel | None:
    text = variables.get(LOG_LEVEL)
    if text is None:
        return None
    found = level_named(text)
    if found is None:
        what = f"{shown(text)} is not a log level" if text.strip() else "is empty"
        complaints.append(f"{LOG_LEVEL}: {what}; using INFO; choose from {', '.join(LEVELS)}")
        return LogLevel()
    return found
