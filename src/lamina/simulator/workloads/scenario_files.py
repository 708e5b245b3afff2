"""
The files of a scenario: the one that was named and those it includes, each read once, included ones first.

Catalogs that they name are read as well; what `imports` name is not. Sizes and numbers are bounded; a file that
includes itself, however far around, is told with the whole way.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from lamina.model import plain
from lamina.model.conversion import mistakes_in, suggest
from lamina.model.errors import InputError, Mistake
from lamina.model.image import Image
from lamina.model.yaml_document import MAX_BYTES, YamlDocument, YamlNode, read_yaml
from lamina.simulator.workloads.scenario_schema import ScenarioFile
from lamina.wire.catalog_file import SUFFIXES, read_catalog

MOST_FILES: Final = 100

_YAML: Final = (".yaml", ".yml")
_ATTRIBUTES: Final = {field.encode_name: field.name for field in msgspec.structs.fields(ScenarioFile)}


class ScenarioEntry(msgspec.Struct, frozen=True):
    """One thing that a file lists, and where it stands."""

    document: YamlDocument
    path: plain.Path
    value: Any  # Any: a struct, text or number of the shape that was asked for
    name: str = ""
    """What it is called, where the file lists things by name."""

    @property
    def where(self) -> str:
        """Name file and line."""
        return f"{self.document.source}:{self.document.line(self.path)}"

    def mistake(self, message: str, *steps: str | int) -> Mistake:
        """Say what is wrong with it, or with what is *steps* inside it."""
        path = (*self.path, *steps)
        return Mistake(self.document.source, message, plain.written_path(path), self.document.line(path))


class ScenarioDocument:
    """One file that could be read."""

    def __init__(self, document: YamlDocument) -> None:
        """Look for what is wrong with its shape."""
        self.document = document
        self.mistakes = mistakes_in(document, ScenarioFile)
        # Not `schema.convert`, which would look for the mistakes once more.
        self.file = msgspec.convert(document.data, ScenarioFile) if not self.mistakes else None
        # What is wrong as YAML already is not told again for its shape; whether it can be used is asked of this one.
        self._as_read = replace(document, mistakes=())
        self.images: tuple[Image, ...] = ()
        """What its catalog file holds."""

    def places(self, field: str) -> dict[str | int, YamlNode]:
        """Return what is listed under a field as it was written, right or wrong."""
        place = self.document.root.inside.get(field)
        return place.inside if place is not None else {}

    def lists(self, field: str) -> bool:
        """Whether a field holds things at all, rather than something else in their place."""
        place = self.document.root.inside.get(field)
        return place is None or isinstance(place.value, list | dict)

    def entries(self, field: str, kind: Any) -> Iterator[ScenarioEntry]:
        """Go through what is listed under a field, except for what has not the shape of a *kind*."""
        if self.file is not None:
            listed = getattr(self.file, _ATTRIBUTES[field])
            for step, value in listed.items() if isinstance(listed, dict) else enumerate(listed):
                yield ScenarioEntry(self.document, (field, step), value, str(step))
            return
        # With a mistake in one entry the others are still looked at.
        for step, place in self.places(field).items():
            if not mistakes_in(self._as_read, kind, (field, step)):
                yield ScenarioEntry(self.document, (field, step), msgspec.convert(place.value, kind), str(step))

    def single(self, field: str, kind: Any) -> ScenarioEntry | None:
        """Return what a field holds that is no list; None when it is not there or has not the shape of a *kind*."""
        place = self.document.root.inside.get(field)
        if place is None or place.value is None or mistakes_in(self._as_read, kind, (field,)):
            return None
        return ScenarioEntry(self.document, (field,), msgspec.convert(place.value, kind))


class ScenarioReader:
    """Reads a file and what it includes."""

    def __init__(self) -> None:
        """Start with no file."""
        self.parts: list[ScenarioDocument] = []
        self.unreadable: list[Mistake] = []
        """Files that are missing, cannot be read or are no YAML: what depends on them cannot be judged."""
        self._seen: set[Path] = set()
        self._catalogs: dict[Path, tuple[Image, ...]] = {}

    def read(self, path: Path) -> None:
        """Read the file that a person named."""
        if trouble := _unreadable_reason(path):
            raise InputError.one(str(path), trouble)
        self._read(path, {})

    def _read(self, path: Path, chain: dict[Path, str]) -> None:
        """Read one file; *chain* is how we came here, by real path, with the names as written."""
        self._seen.add(path.resolve())
        try:
            part = ScenarioDocument(read_yaml(_text(path), str(path)))
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
    """Say why a file cannot be read; empty when it can be tried."""
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
