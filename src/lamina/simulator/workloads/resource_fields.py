"""What pods ask for and nodes offer, as it stands in entries: fields of their own, and everything else by name."""

from collections.abc import Iterable, Iterator
from typing import Final

from lamina.model.errors import Mistake
from lamina.model.resources import CPU, MEMORY, PODS
from lamina.simulator.workloads.scenario_files import ScenarioEntry

OWN_FIELDS: Final = (CPU, MEMORY, PODS)


def misplaced_resources(entry: ScenarioEntry, names: Iterable[str]) -> Iterator[Mistake]:
    """Tell which *names* under ``resources`` have fields of their own."""
    for name in names:
        if name in OWN_FIELDS:
            yield entry.mistake(f"{name} is a field of its own; move it out of resources", "resources", name)
