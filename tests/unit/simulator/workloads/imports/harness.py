"""Helpers for tests of imports: files in a folder, a context with a few images, and the result or the mistakes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lamina.model.errors import InputError, Mistake
from lamina.simulator.workloads.imports import ImportContext, Imported, ImportEntry, read
from lamina.testing import an_image

IMAGES = tuple(an_image(f"{name}:1", {"base": 1000, name: 100}) for name in ("web", "api", "db"))
MEGABYTE = 1024**2


class Said:
    """Stands for the entry of a scenario file."""

    def mistake(self, message: str, *steps: str | int) -> Mistake:
        return Mistake("scenario.yaml", message, ".".join(map(str, steps)), 7)


def around(**more: Any) -> ImportContext:
    """The scenario around an import."""
    return ImportContext(**{"entry": Said(), "images": IMAGES, "seed": 1, **more})


def bring(folder: Path, context: ImportContext | None = None, **entry: Any) -> Imported:
    """Import what an entry says."""
    return read(ImportEntry(**entry), folder, context or around())


def refused(folder: Path, context: ImportContext | None = None, **entry: Any) -> list[str]:
    """Say with which mistakes an import is refused, files named relative to the folder."""
    with pytest.raises(InputError) as caught:
        bring(folder, context, **entry)
    return [str(mistake).replace(f"{folder}/", "").replace(str(folder), ".") for mistake in caught.value.mistakes]


def put(folder: Path, name: str, content: str | bytes) -> Path:
    """Write a file."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def a_workload(*jobs: Mapping[str, Any], nb_res: int = 4, **profiles: Mapping[str, Any]) -> str:
    """A Batsim workload with one job on each line, from line 3 on."""
    rows = ",\n".join(json.dumps(job) for job in jobs)
    shapes = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in profiles.items())
    return f'{{"nb_res": {nb_res},\n"jobs": [\n{rows}],\n"profiles": {{\n{shapes}}}}}\n'


def a_job(number: int | str = 1, **more: Any) -> dict[str, Any]:
    """A job of one resource that comes at once."""
    return {"id": str(number), "subtime": 0, "res": 1, "profile": "short", **more}


SHORT = {"type": "delay", "delay": 10}
