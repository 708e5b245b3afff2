"""
The files of a scenario and the state that all of its entries share.

`ScenarioReader` reads the named file and the files it includes, each once, included files first. It also reads the
catalogs that they name, but not the files under `imports`. File sizes and counts are bounded. An include cycle is
reported with all of its files. `AssemblyState` collects names and mistakes. An entry's own mistake is reported at that
entry; mistakes that merely follow from it are not reported, which is why the state records what could not be read.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from lamina.model import plain
from lamina.model.conversion import read, suggest
from lamina.model.errors import InputError, Mistake
from lamina.model.image import Image
from lamina.model.plain import shown
from lamina.model.yaml_document import MAX_BYTES, YamlDocument, YamlNode, read_yaml
from lamina.wire.catalog_file import SUFFIXES, read_catalog

MOST_FILES: Final = 100

_YAML: Final = (".yaml", ".yml")


class ScenarioEntry(msgspec.Struct, frozen=True):
    """One entry of a file, with its location."""

    document: YamlDocument
    path: plain.Path
    value: Any  # Any: a struct, text or number of the requested type
    name: str = ""
    """Its key, if the file lists such entries by name."""

    @property
    def where(self) -> str:
        """File and line, as in messages."""
        return f"{self.document.source}:{self.document.line(self.path)}"

    def mistake(self, message: str, *steps: str | int) -> Mistake:
        """Return a mistake located at the entry, or *steps* inside it."""
        path = (*self.path, *steps)
        return Mistake(self.document.source, message, plain.written_path(path), self.document.line(path))


class ScenarioDocument:
    """One file of a scenario that is valid YAML; its shape may have mistakes."""

    def __init__(self, document: YamlDocument, shape: type[msgspec.Struct]) -> None:
        """Check the document against the struct type *shape*; `mistakes` lists the differences."""
        self.document = document
        self.file: Any  # Any: a *shape*, or None if there are mistakes
        self.file, self.mistakes = read(document, shape)
        self._attributes = {field.encode_name: field.name for field in msgspec.structs.fields(shape)}
        # For checks of single entries: mistakes of the YAML itself are already in `mistakes`.
        self._as_read = replace(document, mistakes=())
        self.images: tuple[Image, ...] = ()
        """Images of the catalog file that it names."""

    def places(self, field: str) -> dict[str | int, YamlNode]:
        """Return the YAML nodes under a field, valid or not."""
        place = self.document.root.inside.get(field)
        return place.inside if place is not None else {}

    def lists(self, field: str) -> bool:
        """Return whether a field holds a list or mapping, or is absent."""
        place = self.document.root.inside.get(field)
        return place is None or isinstance(place.value, list | dict)

    def entries(self, field: str, kind: Any) -> Iterator[ScenarioEntry]:
        """Yield the entries under a field that have the shape of a *kind*."""
        if self.file is not None:
            listed = getattr(self.file, self._attributes[field])
            for step, value in listed.items() if isinstance(listed, dict) else enumerate(listed):
                yield ScenarioEntry(self.document, (field, step), value, str(step))
            return
        # A mistake in one entry does not hide the others.
        for step in self.places(field):
            value, mistakes = read(self._as_read, kind, (field, step))
            if not mistakes:
                yield ScenarioEntry(self.document, (field, step), value, str(step))

    def single(self, field: str, kind: Any) -> ScenarioEntry | None:
        """Return the value of a field that is not a list; None if it is absent or has not the shape of a *kind*."""
        place = self.document.root.inside.get(field)
        if place is None or place.value is None:
            return None
        if self.file is not None:
            value = getattr(self.file, self._attributes[field])
            return ScenarioEntry(self.document, (field,), value) if isinstance(value, kind) else None
        value, mistakes = read(self._as_read, kind, (field,))
        return None if mistakes else ScenarioEntry(self.document, (field,), value)


class ScenarioReader:
    """Reads a file, the files it includes and the catalogs they name."""

    def __init__(self, shape: type[msgspec.Struct]) -> None:
        """Start with no file; each file must have the fields of the struct type *shape*."""
        self._shape = shape
        self.parts: list[ScenarioDocument] = []
        self.unreadable: list[Mistake] = []
        """Mistakes of files that are missing, unreadable or not YAML; other files may depend on their entries."""
        self._seen: set[Path] = set()
        self._catalogs: dict[Path, tuple[Image, ...]] = {}

    def read(self, path: Path) -> None:
        """Read the file that the user named. Raises InputError if there is no such file."""
        if trouble := _unreadable_reason(path):
            raise InputError.one(str(path), trouble)
        self._read(path, {})

    def _read(self, path: Path, chain: dict[Path, str]) -> None:
        """Read one file; *chain* has the files that include it, by real path, with their names as written."""
        self._seen.add(path.resolve())
        try:
            part = ScenarioDocument(read_yaml(_text(path), str(path)), self._shape)
        except InputError as error:
            self.unreadable.extend(error.mistakes)
            return
        chain = {**chain, path.resolve(): str(path)}
        for index, place in part.places("include").items():
            if isinstance(place.value, str):
                entry = ScenarioEntry(part.document, ("include", index), place.value)
                self._include(entry, path.parent / place.value, chain)
        if (catalog := part.single("catalog", str)) is not None:
            part.images = self._catalog(catalog, path.parent / catalog.value)
        self.parts.append(part)

    def _catalog(self, entry: ScenarioEntry, path: Path) -> tuple[Image, ...]:
        if Path(entry.value).is_absolute():
            self.unreadable.append(entry.mistake("must be relative to this file"))
        elif trouble := _unreadable_reason(path, SUFFIXES):
            self.unreadable.append(entry.mistake(trouble))
        elif (real := path.resolve()) in self._catalogs:
            return self._catalogs[real]
        else:
            try:
                images = self._catalogs[real] = read_catalog(path)
            except InputError as error:
                self.unreadable.extend(error.mistakes)
            else:
                return images
        return ()

    def _include(self, entry: ScenarioEntry, path: Path, chain: dict[Path, str]) -> None:
        if Path(entry.value).is_absolute():
            self.unreadable.append(entry.mistake("must be relative to this file"))
        elif trouble := _unreadable_reason(path):
            self.unreadable.append(entry.mistake(trouble))
        elif (real := path.resolve()) in chain:
            names = list(chain.values())[list(chain).index(real) :]
            way = " → ".join([*names, names[0]])
            self.unreadable.append(entry.mistake(f"the files include each other: {way}; remove one of these includes"))
        elif real in self._seen:
            return
        elif len(self._seen) >= MOST_FILES:
            self.unreadable.append(entry.mistake(f"too many files; at most {MOST_FILES} are read"))
        else:
            self._read(path, chain)


def _unreadable_reason(path: Path, endings: tuple[str, ...] = _YAML) -> str:
    """Return why a file cannot be read; empty if it exists."""
    try:
        if path.is_file():
            return ""
        if path.exists():
            return "is not a file"
        names = sorted(
            one.name for one in path.parent.iterdir() if one.name.endswith(endings) and not one.name.startswith(".")
        )
    except (OSError, ValueError):
        names = []
    return "there is no such file" + (f"; {suggest(path.name, names)}" if names else "")


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError.one(str(path), f"cannot be read ({error.strerror}); check its permissions") from error
    if len(data) > MAX_BYTES:
        raise InputError.one(str(path), f"too large; at most {MAX_BYTES // 1024**2} MiB are read")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError.one(str(path), "is not text in UTF-8; save it as such", line=line) from error


EntryNoun = Literal["node", "pod", "controller"]


class AssemblyState:
    """Names and mistakes that the builders of all kinds of entries share."""

    def __init__(self, parts: Iterable[ScenarioDocument]) -> None:
        """Start without taken names."""
        self.parts = tuple(parts)
        self.mistakes: list[Mistake] = []
        self.named: dict[EntryNoun, dict[str, ScenarioEntry]] = {"node": {}, "pod": {}, "controller": {}}
        """The entry that took each name."""
        self.complete: dict[EntryNoun, bool] = {"node": True, "pod": True, "controller": True}
        """Whether all entries of a kind could be read; only then is an unknown name a mistake."""

    def wrong(self, entry: ScenarioEntry, message: str, *steps: str | int) -> None:
        """Add a mistake located *steps* inside an entry."""
        self.mistakes.append(entry.mistake(message, *steps))

    def entries(self, field: str, kind: type[object], noun: EntryNoun | None = None) -> list[ScenarioEntry]:
        """Return the valid entries of all files under a field; if some are invalid, mark their *noun* as incomplete."""
        entries = [entry for part in self.parts for entry in part.entries(field, kind)]
        listed = sum(len(part.places(field)) for part in self.parts)
        if noun is not None and (len(entries) < listed or not all(part.lists(field) for part in self.parts)):
            self.complete[noun] = False
        return entries

    def bounded(
        self, entries: Iterable[ScenarioEntry], noun: EntryNoun, most: int, weigh: Callable[[Any], int], start: int = 0
    ) -> list[ScenarioEntry]:
        """Return the entries, or none of them if their weights exceed *most*; *start* is the weight already used."""
        total, kept = start, list(entries)
        for entry in kept:
            total += weigh(entry.value)
            if total > most:
                message = f"too many: with this one there are {total}, and at most {most} are simulated"
                self.wrong(entry, message, "count")
                self.complete[noun] = False
                return []
        return kept

    def names(self, entry: ScenarioEntry, noun: EntryNoun) -> list[str]:
        """Take the names of an entry: its name, or for several copies its name followed by 1, 2 and so on."""
        name, count = entry.value.name, entry.value.count
        return self.take(entry, noun, [name] if count == 1 else [f"{name}{number}" for number in range(1, count + 1)])

    def take(self, entry: ScenarioEntry, noun: EntryNoun, names: Iterable[str], *steps: str | int) -> list[str]:
        """Take names for an entry and return those that were free; report the first that was not."""
        taken, names = self.named[noun], list(names)
        twice = [one for one in names if one in taken]
        if twice:
            before = taken[twice[0]].where
            message = f"there is a second {noun} {shown(twice[0])}, the first is in {before}"
            self.wrong(entry, message, *(steps or ("name",)))
        fresh = [one for one in names if one not in taken]
        taken.update(dict.fromkeys(fresh, entry))
        return fresh
