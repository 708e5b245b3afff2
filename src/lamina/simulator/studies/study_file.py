"""
The file of a study: a scenario, profiles, seeds, and factors with their levels.

A factor is a field of the scenario file, so everything that a scenario can say can be varied: catalog, popularity,
arrivals, update rate, nodes, disk, bandwidth, runtime, report delays, load.
"""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from lamina.model.conversion import convert
from lamina.model.errors import InputError
from lamina.model.yaml_document import read_yaml
from lamina.simulator.workloads.field_types import EntryStruct

MOST_SEEDS: Final = 10_000
MOST_LEVELS: Final = 100


class FactorEntry(EntryStruct, frozen=True, kw_only=True):
    """One factor: a field of the scenario file, and the values that it takes."""

    field: Annotated[str, msgspec.Meta(min_length=1)]
    """Path of the field, such as ``workload.arrivals.load`` or ``nodes[0].bandwidth``."""
    values: Annotated[tuple[Any, ...], msgspec.Meta(min_length=2, max_length=MOST_LEVELS)]
    """The first one is the level of the other factors' points in a design that varies one factor at a time."""


class StudyFile(EntryStruct, frozen=True, kw_only=True):
    """The shape of a study file."""

    name: str = ""
    about: str = ""
    scenario: str
    """Scenario file, relative to this file."""
    profiles: tuple[str, ...] = ()
    """Names, or files relative to this file; the first one is the baseline."""
    schedulers: tuple[str, ...] = ()
    """Registered foreign schedulers."""
    seeds: Annotated[int, msgspec.Meta(ge=1, le=MOST_SEEDS)] = 5
    metrics: tuple[str, ...] = ("bytes_pulled", "startup_mean", "startup_p95", "peak_load")
    design: Literal["full", "one-at-a-time"] = "full"
    """All combinations of levels, or the first levels with one factor changed at a time."""
    factors: dict[str, FactorEntry] = msgspec.field(default_factory=dict)


def read_study(path: Path) -> StudyFile:
    """Return the study of a file. Raises InputError with every mistake."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError.one(
            str(path), f"cannot be read: {(why or 'input error').lower()}; name a study file"
        ) from error
    return convert(read_yaml(text, str(path)), StudyFile)
