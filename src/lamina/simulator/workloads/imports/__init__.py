"""
Workloads that others wrote down: Batsim's files, published traces, manifests of real clusters.

    read(entry, folder, context) -> Imported

*entry* is an `ImportEntry` as a scenario file says it, *folder* what its file names are relative to. Raises InputError
with file, line and reason. Never imports the scenario's own loader, which calls it.
"""

from lamina.simulator.workloads.imports.dispatch import read
from lamina.simulator.workloads.imports.import_context import ImportContext, Imported
from lamina.simulator.workloads.imports.import_schema import ImportEntry

__all__ = ["ImportContext", "ImportEntry", "Imported", "read"]
