"""The profile a scenario is run under: the one on the command line, the scenario's own, or the default."""

from pathlib import Path
from typing import Final

from lamina.cli.options.scheduler_profile import configuration, warned
from lamina.model.errors import InputError, Mistake
from lamina.scheduling.config.loader import Configuration
from lamina.scheduling.config.named_profiles import DEFAULT, current_name
from lamina.simulator.workloads import Scenario
from lamina.simulator.workloads.scenario_loader import place_of

OPTION: Final = "--profile"
"""The source that mistakes name when a profile is not a file."""


def chosen_for(scenario: Scenario, file: Path, profile: str | None) -> tuple[str, Configuration]:
    """
    Return the profile that counts for *scenario*, read from *file*, and what it means: *profile*, its own, or the default.

    Raises InputError; a profile that the scenario asks for is reported with the file and the line that say so.
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
    """Place a mistake in the scenario, unless it stands in a configuration file that could be read."""
    if mistake.line:
        return mistake
    said = mistake.message if mistake.source == OPTION else f"{profile} {mistake.message}"
    return Mistake(source, said, "profile", line)
