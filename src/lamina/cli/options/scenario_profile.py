"""The profile of a run: from the command line, from the scenario, or the default."""

from pathlib import Path
from typing import Final

from lamina.cli.options.scheduler_profile import configuration, warned
from lamina.model.errors import InputError, Mistake
from lamina.scheduling.config.loader import Configuration
from lamina.scheduling.config.named_profiles import DEFAULT, current_name
from lamina.simulator.workloads import Scenario
from lamina.simulator.workloads.scenario_loader import place_of

OPTION: Final = "--profile"
"""The source named in mistakes about a profile that is not a file."""


def chosen_for(scenario: Scenario, file: Path, profile: str | None) -> tuple[str, Configuration]:
    """
    Return the profile's name and its configuration: *profile* if given, else the scenario's own, else the default.

    Raises InputError. A mistake in the scenario's own profile names the scenario *file* and the line.
    """
    if profile or not scenario.profile:
        chosen = current_name(profile or DEFAULT)
        return chosen, warned(configuration(chosen))
    try:
        return current_name(scenario.profile), warned(configuration(scenario.profile))
    except InputError as error:
        source, line = place_of(file, "profile")
        raise InputError([_placed(one, scenario.profile, source, line) for one in error.mistakes]) from error


def _placed(mistake: Mistake, profile: str, source: str, line: int) -> Mistake:
    """Move a mistake to the scenario's line, unless it is inside a configuration file that could be read."""
    if mistake.line:
        return mistake
    said = mistake.message if mistake.source == OPTION else f"{profile} {mistake.message}"
    return Mistake(source, said, "profile", line)
