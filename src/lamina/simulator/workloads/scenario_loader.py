"""From a scenario file to a scenario. Everything that is wrong with it is told at once, with file, line and field."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lamina.model.errors import InputError
from lamina.simulator.workloads import units
from lamina.simulator.workloads.assembly import Assembly
from lamina.simulator.workloads.scenario import Scenario
from lamina.simulator.workloads.scenario_files import ScenarioDocument, ScenarioReader


def load_scenario(path: str | Path, seed: int = 0, data: str | Path | None = None) -> Scenario:
    """
    Read a scenario and all it includes; what it leaves to luck is drawn from *seed*.

    Files that it imports are looked for in the folder *data*, or else beside the file that names them. Raises InputError
    with every mistake.
    """
    if data is not None and not Path(data).is_dir():
        raise InputError.one(str(data), "there is no such folder for data; name the one that imports are in")
    reader = ScenarioReader()
    reader.read(Path(path))
    parts = reader.parts
    mistakes = [*reader.unreadable, *(mistake for part in parts for mistake in part.mistakes)]
    if reader.unreadable:
        # What the missing files may have said cannot be told from what nobody said.
        raise InputError(mistakes)
    assembly = Assembly(parts, seed, None if data is None else Path(data))
    mistakes += assembly.mistakes
    if mistakes:
        # Files of the scenario in the order they were read, then those they import.
        order = {source: number for number, source in enumerate(dict.fromkeys(part.document.source for part in parts))}
        raise InputError(sorted(mistakes, key=lambda one: (order.get(one.source, len(order)), one.line)))
    file = parts[-1].file
    assert file is not None, "a file without mistakes has been converted"
    until = _last(parts, "until")
    return Scenario(
        name=file.name or Path(path).stem,
        about=file.about,
        images=assembly.catalog.all_images,
        layer_names=assembly.catalog.layer_names,
        nodes=tuple(assembly.nodes),
        arrivals=tuple(sorted(assembly.arrivals.values(), key=lambda arrival: arrival.at)),
        happenings=tuple(sorted(assembly.happenings, key=lambda happening: happening.at)),
        controllers=tuple(sorted(assembly.controllers, key=lambda controller: controller.at)),
        registry=assembly.registry,
        uplinks=assembly.uplinks,
        delays=assembly.defaults.delays,
        usage=assembly.usage,
        profile=_last(parts, "profile") or "",
        until=None if until is None else units.seconds(until),
        notes=assembly.notes,
    )


def place_of(path: str | Path, field: str) -> tuple[str, int]:
    """Return the file and the line that decide a single value such as ``profile``; line 0 where none does."""
    reader = ScenarioReader()
    reader.read(Path(path))
    for part in reversed(reader.parts):
        if field in part.document.root.inside:
            return part.document.source, part.document.line((field,))
    return str(path), 0


def _last(parts: Iterable[ScenarioDocument], field: str) -> Any:
    """Return a single value: that of the including file wins over that of the files it includes."""
    said = [part.document.root.inside[field].value for part in parts if field in part.document.root.inside]
    return said[-1] if said else None
