"""
How nodes of a scenario pull images: runtimes by name, disks with what the defaults leave open, links that are shared.

A preset is what a node is like that nobody has tuned. Where its numbers come from is told in docs/scenarios.md.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from lamina.model.conversion import suggest
from lamina.model.errors import Mistake
from lamina.model.plain import shown
from lamina.simulator.pulls.runtime_spec import CONTAINERD, DiskSpec, RuntimeSpec
from lamina.simulator.workloads import units
from lamina.simulator.workloads.field_types import Bandwidth
from lamina.simulator.workloads.pull_schema import DiskEntry, ScenarioRuntimeEntry
from lamina.simulator.workloads.scenario_files import ScenarioDocument, ScenarioEntry

PRESETS: Final[Mapping[str, RuntimeSpec]] = {
    "containerd": CONTAINERD,
    # Downloads six layers at once, and keeps what is unpacked only: containers/storage has no compressed copies.
    "crio": msgspec.structs.replace(CONTAINERD, slots=6, reuse="prefix"),
    # containerd with discard_unpacked_layers, as some providers and distributions set it.
    "discarding": msgspec.structs.replace(CONTAINERD, reuse="prefix"),
    # Only the network takes time, one layer after the other: times that can be worked out on paper.
    "plain": RuntimeSpec(slots=1),
}
USUAL: Final = "containerd"
USUAL_DISK: Final = DiskSpec(capacity=1)

_READERS: Final[Mapping[str, Any]] = {
    "resolve": units.seconds,
    "layer_overhead": units.seconds,
    "unpack_rate": lambda value: float(units.rate(value)),
    "connection_rate": lambda value: float(units.rate(value)),
    "disk_rate": lambda value: float(units.rate(value)),
    "write_cache": units.size,
    "size": units.size,
    "every": units.seconds,
    "min_age": units.seconds,
    "evict_every": units.seconds,
}
"""How what is written in a field becomes a number; the others are one."""


class Runtimes:
    """The runtimes, disks and uplinks that nodes can have."""

    def __init__(self, parts: Iterable[ScenarioDocument]) -> None:
        """Take in what all *parts* list."""
        self.mistakes: list[Mistake] = []
        self.uplinks: dict[str, float] = {}
        self._specs = dict(PRESETS)
        parts = tuple(parts)
        # Also what has mistakes of its own counts as listed: one mistake is told once.
        self._names = dict.fromkeys([*PRESETS, *(str(name) for part in parts for name in part.places("runtimes"))])
        self._uplinks = dict.fromkeys(str(name) for part in parts for name in part.places("uplinks"))
        self._from: dict[tuple[str, str], ScenarioEntry] = {}
        for part in parts:
            for entry in part.entries("runtimes", ScenarioRuntimeEntry):
                if self._is_first(entry, "runtime"):
                    self._runtime(entry, entry.value)
            for entry in part.entries("uplinks", Bandwidth):
                if self._is_first(entry, "uplink"):
                    self.uplinks[entry.name] = float(units.bandwidth(entry.value))

    def runtime(self, entry: ScenarioEntry, name: str | None) -> RuntimeSpec:
        """Return the runtime that *entry* names; that of nodes nobody has tuned, and a mistake, when there is none."""
        if name is not None and name not in self._names:
            message = f"there is no runtime {shown(name)}; {suggest(name, self._names)}"
            self.mistakes.append(entry.mistake(message, "runtime"))
        return self._specs.get(name or USUAL, CONTAINERD)

    def uplink(self, entry: ScenarioEntry, name: str) -> str:
        """Return the uplink that *entry* names."""
        if name and name not in self._uplinks:
            what_to_try = suggest(name, self._uplinks) if self._uplinks else "list it under uplinks"
            self.mistakes.append(entry.mistake(f"there is no uplink {shown(name)}; {what_to_try}", "uplink"))
        return name

    def disk(self, entry: ScenarioEntry, usual: DiskEntry, said: str | float | DiskEntry | None) -> DiskSpec | None:
        """Return the disk of *entry*, which says so much of it, with what the *usual* one adds; None: it never fills."""
        settings = {**settings_of(usual), **settings_of(disk_entry(said))}
        if "size" not in settings:
            if said is not None:
                self.mistakes.append(entry.mistake("say the size of the disk", "disk", "size"))
            return None
        if said is not None:
            self.check_disk(entry, settings, settings_of(disk_entry(said)))
        return DiskSpec(capacity=settings.pop("size"), **settings)

    def check_disk(self, entry: ScenarioEntry, settings: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        """Note what is wrong with the *settings* of a disk, as far as it comes from those that are *entry*'s *own*."""
        if own.get("size") == 0:
            self.mistakes.append(
                entry.mistake("a disk of 0 holds nothing; leave it out for one that never fills", "disk")
            )
        high, low = settings.get("high", USUAL_DISK.high), settings.get("low", USUAL_DISK.low)
        if low > high and ("low" in own or "high" in own):
            message = f"images are removed from {high:g} (high) down to {low:g} (low): low cannot be above high"
            self.mistakes.append(entry.mistake(message, "disk"))

    def _is_first(self, entry: ScenarioEntry, what: str) -> bool:
        if what == "runtime" and entry.name in PRESETS:
            message = f"{entry.name} is a preset; choose another name, and use that"
            self.mistakes.append(entry.mistake(message))
            return False
        before = self._from.setdefault((what, entry.name), entry)
        if before is not entry:
            message = f"there is a second {what} {shown(entry.name)}, the first is in {before.where}"
            self.mistakes.append(entry.mistake(message))
        return before is entry

    def _runtime(self, entry: ScenarioEntry, said: ScenarioRuntimeEntry) -> None:
        if said.preset not in PRESETS:
            message = f"there is no preset {shown(said.preset)}; {suggest(said.preset, PRESETS)}"
            self.mistakes.append(entry.mistake(message, "preset"))
            return
        settings = settings_of(said)
        del settings["preset"]
        self._specs[entry.name] = msgspec.structs.replace(PRESETS[said.preset], **settings)


def disk_entry(said: str | float | DiskEntry | None) -> DiskEntry:
    """Spell out a disk of which perhaps only the size was said."""
    return said if isinstance(said, DiskEntry) else DiskEntry(size=said)


def settings_of(entry: ScenarioRuntimeEntry | DiskEntry) -> dict[str, Any]:
    """Return what an entry really says, as numbers."""
    said = {name: value for name, value in msgspec.structs.asdict(entry).items() if value is not None}
    return {name: _READERS[name](value) if name in _READERS else value for name, value in said.items()}
