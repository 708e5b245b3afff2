"""From an entry of a scenario to the reader of its kind; options that mean nothing there are told."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from lamina.model.errors import InputError
from lamina.simulator.workloads.imports import alibaba_dlrm, alibaba_gpu, azure_functions, batsim, manifests
from lamina.simulator.workloads.imports.import_context import ImportContext, Imported
from lamina.simulator.workloads.imports.import_schema import KINDS, ImportEntry

ImportReader = Callable[[ImportEntry, Path, ImportContext], Imported]

_ALWAYS: Final = ("name", "at", "scheduler", "limit", "nodes", "image", "popularity")
_WINDOW: Final = ("from", "until")

READERS: Final[dict[str, tuple[ImportReader, tuple[str, ...]]]] = {
    "batsim": (batsim.read, (*_ALWAYS, *_WINDOW, "platform", "cpu", "memory", "speed", "wholeNodes")),
    "alibabaDlrm": (alibaba_dlrm.read, (*_ALWAYS, *_WINDOW)),
    "alibabaGpu": (alibaba_gpu.read, (*_ALWAYS, *_WINDOW)),
    "azureFunctions": (azure_functions.read, (*_ALWAYS, "functions", "minutes", "keepAlive", "cpu", "memory")),
    "manifests": (manifests.read, ("at", "scheduler", "nodes", "popularity", "unknownImages")),
}
"""Who reads a kind, and which options it knows."""


def read(entry: ImportEntry, folder: Path, context: ImportContext) -> Imported:
    """Read what an entry names, from files relative to *folder*. Raises InputError with every mistake found."""
    kinds = list(entry.kinds)
    if len(kinds) != 1:
        raise InputError([context.entry.mistake(f"say exactly one of {', '.join(KINDS)}")])
    reader, options = READERS[kinds[0]]
    strange = [name for name in _given_options(entry) if name not in options and name not in KINDS]
    if strange:
        hint = f"{kinds[0]} knows {', '.join(options)}"
        raise InputError([context.entry.mistake(f"means nothing here; {hint}", name) for name in strange])
    return reader(entry, folder, context)


def _given_options(entry: ImportEntry) -> list[str]:
    """List the options that are not as they are when nobody says anything."""
    fields = msgspec.structs.fields(ImportEntry)
    return [field.encode_name for field in fields if getattr(entry, field.name) != field.default]
