"""
The points of a study's design, and the scenario document of each.

A point has one level of every factor. Its document is the scenario file with the factors' fields replaced, as plain
data: the caller writes it to a file and runs it.
"""

import itertools
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from lamina.model.errors import InputError, Mistake
from lamina.model.plain import shown
from lamina.model.yaml_document import read_yaml
from lamina.simulator.studies.study_file import StudyFile

MOST_POINTS: Final = 1_000
STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


class StudyPoint(msgspec.Struct, frozen=True):
    """One point of a design."""

    number: int
    levels: dict[str, Any]
    """Factor → value."""

    @property
    def label(self) -> str:
        """The levels in words."""
        return ", ".join(f"{name}={written(value)}" for name, value in self.levels.items()) or "the scenario as it is"


def written(value: Any) -> str:
    """Return a level as text."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def points(study: StudyFile) -> list[StudyPoint]:
    """Return the points of the design, in the order of the factors. Raises InputError if there are too many."""
    levels = {name: factor.values for name, factor in study.factors.items()}
    if study.design == "full":
        combined: Iterable[tuple[Any, ...]] = itertools.product(*levels.values())
        count = 1
        for values in levels.values():
            count *= len(values)
    else:
        first = tuple(values[0] for values in levels.values())
        changed = [
            (*first[:place], value, *first[place + 1 :])
            for place, values in enumerate(levels.values())
            for value in values[1:]
        ]
        combined, count = [first, *changed], 1 + len(changed)
    if count > MOST_POINTS:
        message = f"{count:,} points; use at most {MOST_POINTS:,}, with fewer levels or design: one-at-a-time"
        raise InputError.one(study.name or "study", message, path="factors")
    return [StudyPoint(number, dict(zip(levels, one, strict=True))) for number, one in enumerate(combined)]


def documents(study: StudyFile, source: Path, scenario: Path) -> list[tuple[StudyPoint, dict[str, Any]]]:
    """
    Return the scenario document of every point, with names of files relative to the scenario.

    *source* is the study's file, for messages. Raises InputError for fields that the scenario cannot have.
    """
    try:
        text = scenario.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        message = f"{shown(study.scenario)} cannot be read; name a scenario file, relative to this one"
        raise InputError.one(str(source), message, path="scenario") from error
    base = read_yaml(text, str(scenario)).data
    if not isinstance(base, dict):
        raise InputError.one(str(scenario), "is not a scenario: it has no fields")
    base.setdefault("name", scenario.stem)
    made, mistakes = [], []
    for point in points(study):
        document = msgspec.json.decode(msgspec.json.encode(base))
        for name, value in point.levels.items():
            problem = _put(document, study.factors[name].field, value)
            if problem:
                mistakes.append(Mistake(str(source), problem, f"factors.{name}.field"))
        made.append((point, document))
    if mistakes:
        raise InputError(tuple(dict.fromkeys(mistakes)))
    return made


def moved(document: dict[str, Any], before: Path, folder: Path) -> dict[str, Any]:
    """Return a document with the names of included files and of a catalog file relative to another folder."""

    def renamed(name: str) -> str:
        return os.path.relpath(before / name, folder)

    changes: dict[str, Any] = {}
    if isinstance(document.get("include"), list):
        changes["include"] = [renamed(str(name)) for name in document["include"]]
    if isinstance(document.get("catalog"), str):
        changes["catalog"] = renamed(document["catalog"])
    return {**document, **changes}


def _put(document: dict[str, Any], field: str, value: Any) -> str:
    """Set a field; return what is wrong with its path, empty if nothing is."""
    steps: list[str | int] = [name or int(number) for name, number in STEP.findall(field)]
    rebuilt = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
    if rebuilt != field:
        return f"{shown(field)} is no path of a field; write it like workload.arrivals.load or nodes[0].bandwidth"
    place: Any = document
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        if isinstance(step, int):
            if not isinstance(place, list) or step >= len(place):
                return f"{shown(field)}: the scenario has no entry [{step}] there; count entries from 0"
        elif not isinstance(place, dict):
            return f"{shown(field)}: {shown(step)} is inside a value without fields; set the field around it"
        elif not last:
            place.setdefault(step, {})
        if last:
            place[step] = value
        else:
            place = place[step]
    return ""
