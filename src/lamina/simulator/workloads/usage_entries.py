"""From the `usage` of a scenario to how the use of nodes is measured."""

from lamina.simulator.cluster import UsageSpec
from lamina.simulator.workloads import units
from lamina.simulator.workloads.assembly_state import AssemblyState
from lamina.simulator.workloads.scenario_schema import UsageEntry


def usage_spec(ledger: AssemblyState) -> UsageSpec | None:
    """Return what the including file says; None when nobody says anything, or it takes back what others say."""
    said = [part for part in ledger.parts if "usage" in part.document.root.inside]
    entry = said[-1].single("usage", UsageEntry) if said else None
    if entry is None:
        return None
    usage: UsageEntry = entry.value
    every, window = units.seconds(usage.every), units.seconds(usage.window)
    if window < every:
        message = f"is shorter than the time between two reports ({every:g} s), so that some use would never be seen"
        ledger.wrong(entry, f"{message}; write at least that", "window")
    return UsageSpec(every=every, window=window)
