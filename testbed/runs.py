"""
Testbeds that run on their own: `up` leaves one behind with a note, `down` and `status` read the notes.

    <cache>/lamina/testbed/run/<name>.json     the note
    <cache>/lamina/testbed/run/<name>/         its folder

Processes are found by the mark that the note names, not by their numbers, so an old note can end nothing of others.
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
    """A process as it was when the note was written."""

    pid: int
    started: int
    """In ticks since the machine was started: together with the number it names one process only."""

    @property
    def running(self) -> bool:
        """Whether it is still that process, and not one that has ended and waits to be noticed."""
        return leftovers.started(self.pid) == self.started and leftovers.state(self.pid) != "Z"


class Note(msgspec.Struct, frozen=True):
    """What is to be known about a testbed that runs on its own."""

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
        """Whether anything of it is left."""
        return any(process.running for process in self.parts.values())


def home() -> Path:
    """Where notes and folders are."""
    return building.home() / "run"


def checked(name: str) -> str:
    """A name that can be a file's."""
    if not NAME.fullmatch(name):
        raise TestbedError(f"{name!r} is no name for a testbed: at most 20 small letters, digits and dashes")
    return name


def folder(name: str) -> Path:
    """The folder of a testbed; a dead one that had this name is cleared away, a living one is in the way."""
    old = find(checked(name))
    if old is not None and old.running:
        raise TestbedError(
            f"a testbed {name!r} is up already: `python -m testbed down --name {name}` ends it, --name starts another"
        )
    if old is not None:
        down(old)
    place = home() / name
    # Without a note it is what a killed `up` left.
    if place.exists():
        leftovers.unmount(place)
        shutil.rmtree(place)
    home().mkdir(parents=True, exist_ok=True)
    return place


def remember(name: str, bed: Testbed) -> Note:
    """Write the note about a testbed that will be left alone."""
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
    """The note about *name*; None when there is none."""
    path = home() / f"{name}.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Note)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise TestbedError(f"{path} is no note of a testbed ({error}): delete it") from error


def every() -> Iterator[Note]:
    """Every note, by name."""
    for path in sorted(home().glob("*.json")):
        note = find(path.stem)
        if note is not None:
            yield note


def down(note: Note) -> None:
    """End a testbed and clear away what it left; a dead one has only things to clear away."""
    # The folder is told by the name and not by the note: a note that was tampered with must not delete anything else.
    leftovers.clear(note.mark, home() / checked(note.name))
    (home() / f"{note.name}.json").unlink(missing_ok=True)
