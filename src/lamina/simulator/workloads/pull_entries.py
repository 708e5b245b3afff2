"""
Runtimes, disks, uplinks and the registry of a scenario: the shape of their entries, and the specs made from them.

A preset describes a node with default settings. docs/scenarios.md gives the sources of its numbers.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from lamina.model.conversion import suggest
from lamina.model.errors import Mistake
from lamina.model.plain import shown
from lamina.simulator.pulls.runtime_spec import CONTAINERD, DiskSpec, RuntimeSpec
from lamina.simulator.workloads.field_types import Bandwidth, Duration, EntryStruct, Fraction, Period, Rate, Size
from lamina.simulator.workloads.scenario_files import ScenarioDocument, ScenarioEntry

MOST_AT_ONCE: Final = 10_000

ParallelCount = Annotated[int, msgspec.Meta(ge=0, le=MOST_AT_ONCE)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=MOST_AT_ONCE)]


class ScenarioRuntimeEntry(EntryStruct, frozen=True, kw_only=True):
    """A container runtime: a preset, and the fields of `RuntimeSpec` that differ from it."""

    preset: str = "containerd"
    parallel_pulls: ParallelCount | None = None
    pull_qps: Annotated[float, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    pull_burst: AtLeastOne | None = None
    slots: ParallelCount | None = None
    slots_per: Literal["image", "node"] | None = None
    connection_rate: Rate | None = None
    resolve: Duration | None = None
    unpack_rate: Rate | None = None
    unpack_threads: AtLeastOne | None = None
    disk_rate: Rate | None = None
    write_cache: Size | None = None
    layer_overhead: Duration | None = None
    ratio: Annotated[float, msgspec.Meta(gt=0, le=1000)] | None = None
    reuse: Literal["prefix", "set"] | None = None
    lazy: Fraction | None = None
    peers: bool | None = None


class DiskEntry(EntryStruct, frozen=True, kw_only=True):
    """The file system for images and its garbage collection. The fields are those of `DiskSpec`."""

    size: Size | None = None
    """Unset: the size in the defaults."""
    high: Fraction | None = None
    low: Fraction | None = None
    every: Period | None = None
    min_age: Duration | None = None
    evict_below: Annotated[float, msgspec.Meta(ge=0, lt=1)] | None = None
    evict_every: Period | None = None
    accounting: Literal["reported", "real"] | None = None


class RegistryEntry(EntryStruct, frozen=True, kw_only=True):
    """The registry that all nodes pull from."""

    rate: Rate


PRESETS: Final[Mapping[str, RuntimeSpec]] = {
    "containerd": CONTAINERD,
    # CRI-O downloads six layers at once and keeps only unpacked layers: containers/storage has no compressed copies.
    "crio": msgspec.structs.replace(CONTAINERD, slots=6, reuse="prefix"),
    # containerd with discard_unpacked_layers, as some providers and distributions set it.
    "discarding": msgspec.structs.replace(CONTAINERD, reuse="prefix"),
    # Only the network takes time, one layer after the other: pull times can be calculated by hand.
    "plain": RuntimeSpec(slots=1),
}
USUAL: Final = "containerd"
USUAL_DISK: Final = DiskSpec(capacity=1)


class Runtimes:
    """Runtimes, disks and uplinks that the nodes of a scenario can use."""

    def __init__(self, parts: Iterable[ScenarioDocument]) -> None:
        """Read the runtimes and uplinks that *parts* list."""
        self.mistakes: list[Mistake] = []
        self.uplinks: dict[str, float] = {}
        self._specs = dict(PRESETS)
        parts = tuple(parts)
        # Names include entries with mistakes: using such a name is not a second mistake.
        self._names = dict.fromkeys([*PRESETS, *(str(name) for part in parts for name in part.places("runtimes"))])
        self._uplinks = dict.fromkeys(str(name) for part in parts for name in part.places("uplinks"))
        self._from: dict[tuple[str, str], ScenarioEntry] = {}
        for part in parts:
            for entry in part.entries("runtimes", ScenarioRuntimeEntry):
                if self._is_first(entry, "runtime"):
                    self._runtime(entry, entry.value)
            for entry in part.entries("uplinks", Bandwidth):
                if self._is_first(entry, "uplink"):
                    self.uplinks[entry.name] = entry.value

    def runtime(self, entry: ScenarioEntry, name: str | None) -> RuntimeSpec:
        """Return the runtime called *name*; if there is none, note a mistake and return the default runtime."""
        if name is not None and name not in self._names:
            message = f"there is no runtime {shown(name)}; {suggest(name, self._names)}"
            self.mistakes.append(entry.mistake(message, "runtime"))
        return self._specs.get(name or USUAL, CONTAINERD)

    def uplink(self, entry: ScenarioEntry, name: str) -> str:
        """Return *name*; note a mistake at *entry* if no uplink is called that."""
        if name and name not in self._uplinks:
            what_to_try = suggest(name, self._uplinks) if self._uplinks else "list it under uplinks"
            self.mistakes.append(entry.mistake(f"there is no uplink {shown(name)}; {what_to_try}", "uplink"))
        return name

    def disk(self, entry: ScenarioEntry, usual: DiskEntry, given: int | DiskEntry | None) -> DiskSpec | None:
        """Return the disk that *entry* sets as *given*, completed from the *usual* one; None: the disk never fills."""
        settings = {**settings_of(usual), **settings_of(disk_entry(given))}
        if "size" not in settings:
            if given is not None:
                self.mistakes.append(entry.mistake("say the size of the disk", "disk", "size"))
            return None
        if given is not None:
            self.check_disk(entry, settings, settings_of(disk_entry(given)))
        return DiskSpec(capacity=settings.pop("size"), **settings)

    def check_disk(self, entry: ScenarioEntry, settings: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        """Note mistakes in the *settings* of a disk, but only if *entry* sets the fields (*own*) that cause them."""
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

    def _runtime(self, entry: ScenarioEntry, given: ScenarioRuntimeEntry) -> None:
        if given.preset not in PRESETS:
            message = f"there is no preset {shown(given.preset)}; {suggest(given.preset, PRESETS)}"
            self.mistakes.append(entry.mistake(message, "preset"))
            return
        settings = settings_of(given)
        del settings["preset"]
        self._specs[entry.name] = msgspec.structs.replace(PRESETS[given.preset], **settings)


def disk_entry(given: int | DiskEntry | None) -> DiskEntry:
    """Return a disk entry; a plain value is its size."""
    return given if isinstance(given, DiskEntry) else DiskEntry(size=given)


def settings_of(entry: ScenarioRuntimeEntry | DiskEntry) -> dict[str, Any]:
    """Return the fields that an entry sets."""
    return {name: value for name, value in msgspec.structs.asdict(entry).items() if value is not None}
