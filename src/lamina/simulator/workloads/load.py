"""From a scenario file to a scenario. Everything that is wrong with it is told at once, with file, line and field."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from lamina.model.errors import InputError
from lamina.simulator.cluster import Delays
from lamina.simulator.workloads import units
from lamina.simulator.workloads.assembly import Assembly
from lamina.simulator.workloads.files import Part, Reader
from lamina.simulator.workloads.scenario import Scenario

BANDWIDTH: Final = 125_000_000.0
"""Bytes per second of a node when neither it nor the defaults say: a gigabit link."""

_DELAYS: Final = ("report", "status", "start", "bind")


def load_scenario(path: str | Path, seed: int = 0) -> Scenario:
    """
    Read a scenario and all it includes; what it leaves to luck is drawn from *seed*.

    Raises InputError with every mistake.
    """
    reader = Reader()
    reader.read(Path(path))
    parts = reader.parts
    mistakes = [*reader.unreadable, *(mistake for part in parts for mistake in part.mistakes)]
    if reader.unreadable:
        # What the missing files may have said cannot be told from what nobody said.
        raise InputError(mistakes)
    defaults = _defaults(parts)
    assembly = Assembly(parts, defaults.get("bandwidth", BANDWIDTH), seed)
    mistakes += assembly.mistakes
    if mistakes:
        order = [part.document.source for part in parts]
        raise InputError(sorted(mistakes, key=lambda mistake: (order.index(mistake.source), mistake.line)))
    file = parts[-1].file
    assert file is not None, "a file without mistakes has been converted"
    until = _last(parts, "until")
    return Scenario(
        name=file.name or Path(path).stem,
        about=file.about,
        images=assembly.catalogue.all_images,
        layer_names=assembly.catalogue.layer_names,
        nodes=tuple(assembly.nodes.values()),
        arrivals=tuple(sorted(assembly.arrivals.values(), key=lambda arrival: arrival.at)),
        happenings=tuple(sorted(assembly.happenings, key=lambda happening: happening.at)),
        delays=Delays(**{name: defaults[name] for name in _DELAYS if name in defaults}),
        profile=_last(parts, "profile") or "",
        until=None if until is None else units.seconds(until),
    )


def _last(parts: Iterable[Part], field: str) -> Any:
    """Return a single value: that of the including file wins over that of the files it includes."""
    said = [part.document.root.inside[field].value for part in parts if field in part.document.root.inside]
    return said[-1] if said else None


def _defaults(parts: Iterable[Part]) -> dict[str, float]:
    """Join the defaults of all files, field by field."""
    joined: dict[str, float] = {}
    for part in parts:
        if part.file is None:
            continue
        defaults = part.file.defaults
        if defaults.bandwidth is not None:
            joined["bandwidth"] = float(units.bandwidth(defaults.bandwidth))
        for name in _DELAYS:
            if (value := getattr(defaults, f"{name}_delay")) is not None:
                joined[name] = units.seconds(value)
    return joined
