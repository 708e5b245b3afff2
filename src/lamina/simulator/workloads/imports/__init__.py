"""
Readers for files of other tools: Batsim workloads, published traces, manifests of real clusters.

    read(entry, folder, context) -> Imported

*entry* is an `ImportEntry` of a scenario file, and its file names are relative to *folder*. Raises InputError with
file, line and reason. Does not import the scenario loader, which calls it.
"""

from lamina.simulator.workloads.imports.dispatch import read
from lamina.simulator.workloads.imports.import_schema import ImportContext, Imported, ImportEntry

__all__ = ["ImportContext", "ImportEntry", "Imported", "read"]
