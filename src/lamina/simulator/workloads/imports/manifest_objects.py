"""
The Kubernetes objects in a file or folder, each as JSON and with its line.

Reads YAML with several documents, JSON, and the lists that ``kubectl get -o yaml`` and ``-o json`` print. YAML has the
limits of `lamina.model.yaml_document`, so a large cluster needs JSON. `manifests` interprets the objects.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from lamina.model.errors import InputError, Mistake
from lamina.model.yaml_document import MAX_BYTES, YamlNode, read_yaml_all
from lamina.simulator.workloads.imports import import_files
from lamina.simulator.workloads.imports.import_files import JsonFile

SUFFIXES: Final = (".yaml", ".yml", ".json", ".json.gz", ".json.zst", ".yaml.gz", ".yaml.zst")
MOST_FILES: Final = 1_000
MOST_OBJECTS: Final = 500_000


class ManifestObject(msgspec.Struct, frozen=True):
    """One Kubernetes object of a manifest."""

    source: str
    line: int
    kind: str
    data: bytes
    """The object in JSON."""

    def wrong(self, message: str, path: str = "") -> InputError:
        """Return an error located at the object."""
        return InputError([Mistake(self.source, message, path, self.line)])


class _ObjectKind(msgspec.Struct, frozen=True):
    """The fields of an object that show its kind."""

    kind: str = ""
    items: list[msgspec.Raw] | None = None


def objects(path: Path) -> Iterator[ManifestObject]:
    """Yield the objects of a file, or of all manifests in a folder, in the order of their names."""
    paths = [path]
    if path.is_dir():
        named = (one for one in path.rglob("*") if one.name.endswith(SUFFIXES) and not one.name.startswith("."))
        paths = sorted(islice((one for one in named if one.is_file()), MOST_FILES + 1))
        if not paths:
            raise InputError.one(str(path), f"has no manifest: they end in {', '.join(SUFFIXES)}")
        if len(paths) > MOST_FILES:
            raise InputError.one(str(path), f"has more than {MOST_FILES} manifests; name a folder with fewer")
    count = 0
    for one in paths:
        for found in _in_file(one):
            count += 1
            if count > MOST_OBJECTS:
                raise found.wrong(f"more than {MOST_OBJECTS} objects; leave some out")
            yield found


def _in_file(path: Path) -> Iterator[ManifestObject]:
    file = JsonFile(path)
    if file.data.lstrip()[:1] == b"{":
        yield from _in_json(file)
        return
    if len(file.data) > MAX_BYTES:
        message = (
            f"too large for YAML; at most {MAX_BYTES // 1024**2} MiB are read; write it as JSON (kubectl get -o json)"
        )
        raise InputError.one(file.source, message)
    for document in read_yaml_all(import_files.text_of(file.data, file.source), file.source):
        # Reading `data` raises InputError if the document has mistakes.
        assert document.data is document.root.value, "a document without mistakes"
        yield from _in_yaml(file.source, document.root)


def _in_json(file: JsonFile) -> Iterator[ManifestObject]:
    shell = file.decode(_ObjectKind)
    if not _is_list(shell.kind) or shell.items is None:
        yield ManifestObject(file.source, 1, shell.kind, file.data)
        return
    for raw, (start, line) in zip(shell.items, file.places(shell.items), strict=True):
        one = file.decode(_ObjectKind, raw, start)
        yield ManifestObject(file.source, line, one.kind or shell.kind.removesuffix("List"), bytes(raw))


def _in_yaml(source: str, place: YamlNode) -> Iterator[ManifestObject]:
    value: Any = place.value
    if not isinstance(value, dict):
        raise InputError.one(source, "is no Kubernetes object: one has apiVersion, kind and metadata", line=place.line)
    given = value.get("kind")
    kind = given if isinstance(given, str) else ""
    items = place.inside.get("items")
    if _is_list(kind) and items is not None and isinstance(items.value, list):
        for item in items.inside.values():
            yield from _in_yaml(source, item)
    else:
        yield ManifestObject(source, place.line, kind, msgspec.json.encode(value))


def _is_list(kind: str) -> bool:
    return kind.endswith("List")
