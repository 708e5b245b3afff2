"""
Testbeds that keep running: `up` leaves one behind with a note, `down` and `status` read the notes.

    <cache>/lamina/testbed/run/<name>.json     the note
    <cache>/lamina/testbed/run/<name>/         its folder

Processes are found by the note's mark, not by their pids, so an old note cannot end other processes.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from testbed import building, leftovers
from testbed.bed import Testbed
from testbed.errors import TestbedError

NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?")


class Process(msgspec.Struct, frozen=True):
    """A process at the time the note was written."""

    pid: int
    started: int
    """Start time in ticks since boot; together with the pid it identifies one process."""

    @property
    def running(self) -> bool:
        """Whether it is still that process, and not a zombie."""
        return leftovers.started(self.pid) == self.started and leftovers.state(self.pid) != "Z"


class Note(msgspec.Struct, frozen=True):
    """Facts about a testbed that keeps running."""

    name: str
    mark: str
    folder: str
    version: str
    url: str
    kubeconfig: str
    kubectl: str
    parts: dict[str, Process]

    @property
    def running(self) -> bool:
        """Whether any of its processes is left."""
        return any(process.running for process in self.parts.values())


def home() -> Path:
    """Return the folder of notes and testbeds."""
    return building.home() / "run"


def checked(name: str) -> str:
    """Return *name* if it is valid. Raises TestbedError."""
    if not NAME.fullmatch(name):
        raise TestbedError(
            f"{name!r} is not a valid name for a testbed; use at most 20 lowercase letters, digits and dashes"
        )
    return name


def folder(name: str) -> Path:
    """Return the folder of a new testbed; removes a dead one of this name. Raises TestbedError if one is running."""
    old = find(checked(name))
    if old is not None and old.running:
        raise TestbedError(
            f"a testbed {name!r} is already up; `python -m testbed down --name {name}` ends it, --name starts another"
        )
    if old is not None:
        down(old)
    place = home() / name
    # A folder without a note was left by an `up` that was killed.
    if place.exists():
        leftovers.unmount(place)
        shutil.rmtree(place)
    home().mkdir(parents=True, exist_ok=True)
    return place


def remember(name: str, bed: Testbed) -> Note:
    """Write the note of a testbed that keeps running."""
    processes = {part: Process(program.pid, leftovers.started(program.pid) or 0) for part, program in bed.parts.items()}
    note = Note(
        name,
        bed.site.mark,
        str(bed.folder),
        bed.version,
        bed.url,
        str(bed.admin),
        str(bed.site.program_path("kubectl")),
        processes,
    )
    path, new = home() / f"{name}.json", home() / f"{name}.json.new"
    new.write_bytes(msgspec.json.format(msgspec.json.encode(note), indent=2))
    new.rename(path)
    return note


def find(name: str) -> Note | None:
    """Return the note of *name*; None if there is none."""
    path = home() / f"{name}.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Note)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise TestbedError(f"{path} is not a note of a testbed ({error}); delete it") from error


def every() -> Iterator[Note]:
    """Yield every note, sorted by name."""
    for path in sorted(home().glob("*.json")):
        note = find(path.stem)
        if note is not None:
            yield note


def down(note: Note) -> None:
    """End a testbed and remove its files; of a dead one only files are left."""
    # The folder comes from the name and not from the note: a modified note must not delete another folder.
    leftovers.clear(note.mark, home() / checked(note.name))
    (home() / f"{note.name}.json").unlink(missing_ok=True)
