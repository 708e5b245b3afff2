"""What holds in a scenario where nothing else is said: the defaults of all its files, joined field by field."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from lamina.model.errors import Mistake
from lamina.simulator.cluster import Delays
from lamina.simulator.pulls.runtime_spec import CONTAINERD, RuntimeSpec
from lamina.simulator.workloads import units
from lamina.simulator.workloads.pull_schema import DiskEntry
from lamina.simulator.workloads.runtimes import Runtimes, disk_entry, settings_of
from lamina.simulator.workloads.scenario_files import ScenarioDocument
from lamina.simulator.workloads.scenario_schema import DefaultsEntry

BANDWIDTH: Final = 125_000_000.0
"""Bytes per second of a node when neither it nor the defaults say: a gigabit link."""

REALISTIC_DELAYS: Final = Delays(report=1.0, report_gap=10.0, status=(10.0, 20.0, 30.0, 40.0))
"""What a scenario gets that says nothing: agents report at most every ten seconds, and kubelets publish images late."""

_DELAYS: Final = {
    "report_delay": "report",
    "report_gap": "report_gap",
    "status_delay": "status",
    "start_delay": "start",
    "stop_delay": "stop",
    "bind_delay": "bind",
    "restart_delay": "restart",
    "restart_most": "restart_most",
    "notice_delay": "notice",
    "evict_after": "evict_after",
}
"""Which field sets which delay."""


class ScenarioDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """What nodes and delays are like unless something else is said."""

    bandwidth: float = BANDWIDTH
    runtime: RuntimeSpec = CONTAINERD
    disk: DiskEntry = DiskEntry()
    """As far as it was said; a node may say the rest."""
    delays: Delays = REALISTIC_DELAYS


def join_defaults(parts: Iterable[ScenarioDocument], runtimes: Runtimes) -> tuple[ScenarioDefaults, list[Mistake]]:
    """Join the defaults of all files; the including one has the last word on each field."""
    mistakes: list[Mistake] = []
    settings: dict[str, Any] = {}
    delays: dict[str, Any] = {}
    disk = DiskEntry()
    for entry in filter(None, (part.single("defaults", DefaultsEntry) for part in parts)):
        said: DefaultsEntry = entry.value
        if said.bandwidth is not None:
            settings["bandwidth"] = float(units.bandwidth(said.bandwidth))
        if said.runtime is not None:
            settings["runtime"] = runtimes.runtime(entry, said.runtime)
        if said.disk is not None:
            disk = _over(disk, disk_entry(said.disk))
            runtimes.check_disk(entry, settings_of(disk), settings_of(disk_entry(said.disk)))
        delays |= {
            name: units.lag(value) for field, name in _DELAYS.items() if (value := getattr(said, field)) is not None
        }
        first, most = (
            delays.get("restart", REALISTIC_DELAYS.restart),
            delays.get("restart_most", REALISTIC_DELAYS.restart_most),
        )
        if first > most:
            message = f"the first restart would wait longer ({first:g} s) than any may ({most:g} s); raise restartMost"
            mistakes.append(entry.mistake(message, "restartDelay"))
    return ScenarioDefaults(**settings, disk=disk, delays=msgspec.structs.replace(REALISTIC_DELAYS, **delays)), mistakes


def _over(below: DiskEntry, above: DiskEntry) -> DiskEntry:
    """Lay what one entry says over what another says."""
    said = {name: value for name, value in msgspec.structs.asdict(above).items() if value is not None}
    return msgspec.structs.replace(below, **said)
