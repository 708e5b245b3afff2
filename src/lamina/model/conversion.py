"""
Convert a document to msgspec structs, and report every mistake at once: its line, what is wrong, what to try.

Readers of scenarios and configurations describe the format as msgspec structs and call `convert`. The description is
walked beside the data. Only data without a mistake is passed to msgspec, which builds the structs. Three rules go
beyond msgspec's: unknown fields are always mistakes, ``.nan`` is not a number, and a field may bring its own reader::

    bandwidth: Annotated[str, msgspec.Meta(extra={"reads": quantity.whole})]

`convert` calls the reader with the value; if it raises ValueError, that message is the mistake. The value stays as
written. A field that *parses* holds the result of its reader instead, and names the type of the value as written::

    bandwidth: Annotated[int, msgspec.Meta(extra={"parses": quantity.whole, "written": inspect.type_info(str)})]

Keys of mappings cannot be parsed. Only msgspec checks types that the walk does not know (dates, custom types), and it
stops at its first mistake.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

import msgspec
from msgspec import inspect

from lamina.model import plain, shapes
from lamina.model.errors import InputError, Mistake
from lamina.model.plain import Path, Plain
from lamina.model.similar import nearest
from lamina.model.yaml_document import YamlDocument

T = TypeVar("T")

MOST_NAMES: Final = 12
"""Valid names that are listed when none is similar."""
TOO_MANY_NAMES: Final = 50
"""With more valid names than this, the first few do not help, and none is listed."""


def convert(document: YamlDocument, kind: type[T], path: Path = ()) -> T:
    """Build a *kind* from the document, or from its part at *path*. Raises InputError with all mistakes."""
    walk = _Walk(document)
    mistakes = [*document.mistakes, *walk.mistakes(kind, path)]
    if not mistakes:
        try:
            return walk.build(kind, path)
        except msgspec.ValidationError as error:
            mistakes = [_msgspec_mistake(document, path, str(error))]
    raise InputError(_in_order(mistakes))


def mistakes_in(document: YamlDocument, kind: type[object], path: Path = ()) -> list[Mistake]:
    """
    Return what is wrong with the part at *path*, ordered by line.

    Mistakes in the YAML itself are included only for the whole document, so that the lists of its parts can be joined.
    """
    found = _Walk(document).mistakes(kind, path)
    return _in_order(found if path else [*document.mistakes, *found])


def read(document: YamlDocument, kind: type[T], path: Path = ()) -> tuple[T | None, list[Mistake]]:
    """Return a *kind* built from the part at *path*, and no mistakes; or None, and those of `mistakes_in`."""
    walk = _Walk(document)
    found = walk.mistakes(kind, path)
    mistakes = _in_order(found if path else [*document.mistakes, *found])
    return (None if mistakes else walk.build(kind, path)), mistakes


def suggest(name: str, valid: Iterable[str]) -> str:
    """Return what to try instead of *name*: a similar valid name; else some valid names, unless there are very many."""
    names = list(valid)
    if near := nearest(name, names):
        return f"did you mean {plain.shown(near)}?"
    if not names:
        return "nothing can be chosen here"
    if len(names) > TOO_MANY_NAMES:
        return f"none of the {len(names):,} valid names is similar"
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"choose from {', '.join(names[:MOST_NAMES])}{more}"


def _in_order(mistakes: Iterable[Mistake]) -> list[Mistake]:
    return sorted(mistakes, key=lambda mistake: mistake.line)


def _msgspec_mistake(document: YamlDocument, path: Path, problem: str) -> Mistake:
    """Locate a mistake that msgspec found after the walk had found none."""
    message, _, where = " ".join(problem.split()).rpartition(" - at ")
    steps = re.findall(r"\.([^.\[`]+)|\[(\d+)\]", where.partition("[...]")[0]) if message else []
    full = (*path, *(name or int(position) for name, position in steps))
    return Mistake(document.source, message or where, plain.written_path(full), document.line(full))


class _Walk:
    """Walks data and type description in parallel."""

    def __init__(self, document: YamlDocument) -> None:
        self.document = document
        self.parsed: dict[Path, object] = {}

    def build(self, kind: type[T], path: Path) -> T:
        """Return the part at *path*, in which `mistakes` found none, as a *kind*."""
        return msgspec.convert(self.with_parsed(self.document.at(path).value, path), kind)

    def with_parsed(self, value: Plain, path: Path) -> object:
        """Return a copy of a value with the results of parsers in place of what is written."""
        if not self.parsed:
            return value
        if path in self.parsed:
            return self.parsed[path]
        match value:
            case dict():
                return {name: self.with_parsed(item, (*path, name)) for name, item in value.items()}
            case list():
                return [self.with_parsed(item, (*path, position)) for position, item in enumerate(value)]
        return value

    def mistakes(self, kind: type[object], path: Path) -> list[Mistake]:
        place = self.document.root
        for step in path:
            place = place.inside[step]
        reported = {(mistake.path, mistake.line) for mistake in self.document.mistakes}
        found = self.check(inspect.type_info(kind), place.value, path)
        return [mistake for mistake in found if (mistake.path, mistake.line) not in reported]

    def mistake(self, path: Path, message: str) -> Mistake:
        return Mistake(self.document.source, message, plain.written_path(path), self.document.line(path))

    def check(self, kind: inspect.Type, value: Plain, path: Path) -> Iterator[Mistake]:
        """Yield what is wrong with one value and with everything inside it."""
        match kind:
            case inspect.Metadata():
                inner = list(self.check(shapes.written_kind(kind), value, path))
                yield from inner or self.reading(kind, value, path)
            case inspect.UnionType():
                yield from self.union(kind, value, path)
            case _ if not shapes.fits(kind, value):
                yield self.misfit(kind, value, path)
            case inspect.LiteralType() | inspect.EnumType():
                if not shapes.fits(kind, value, exactly=True):
                    yield self.choice(path, value, shapes.choices(kind))
            case _:
                for message in shapes.broken_limits(kind, value):
                    yield self.mistake(path, message)
                yield from self.inside(kind, value, path)

    def inside(self, kind: inspect.Type, value: Plain, path: Path) -> Iterator[Mistake]:
        match kind, value:
            case inspect.CollectionType(), list():
                for position, item in enumerate(value):
                    yield from self.check(kind.item_type, item, (*path, position))
            case inspect.TupleType(), list():
                for position, (item_kind, item) in enumerate(zip(kind.item_types, value, strict=False)):
                    yield from self.check(item_kind, item, (*path, position))
            case inspect.DictType(), dict():
                for name, item in value.items():
                    yield from self.check(kind.key_type, name, (*path, name))
                    yield from self.check(kind.value_type, item, (*path, name))
            case inspect.StructType(array_like=False), dict():
                yield from self.struct(kind, value, path)

    def misfit(self, kind: inspect.Type, value: Plain, path: Path) -> Mistake:
        written = self.document.at(path).written
        return self.mistake(path, f"expected {shapes.expected(kind)}, found {shapes.found(kind, value, written)}")

    def choice(self, path: Path, value: Plain, valid: Iterable[object]) -> Mistake:
        names = [str(one) for one in valid if one is not None]
        return self.mistake(path, f"{plain.shown(value)} is not allowed; {suggest(str(value), names)}")

    def reading(self, kind: inspect.Metadata, value: Plain, path: Path) -> Iterator[Mistake]:
        """Call the reader that the field brings along."""
        extra = kind.extra or {}
        reads = extra.get("parses", extra.get("reads"))
        if reads is not None and value is not None:
            try:
                result = reads(value)
                if "parses" in extra:
                    self.parsed[path] = result
            except ValueError as error:
                yield self.mistake(path, " ".join(str(error).split()) or f"{plain.shown(value)} cannot be read")

    def union(self, kind: inspect.UnionType, value: Plain, path: Path) -> Iterator[Mistake]:
        fitting = [one for one in kind.types if shapes.fits(one, value)]
        structs = [one for one in fitting if isinstance(one, inspect.StructType)]
        if not fitting:
            yield self.misfit(kind, value, path)
        elif len(structs) > 1 and isinstance(value, dict):
            yield from self.tagged(structs, value, path)
        elif len(fitting) == 1:
            yield from self.check(fitting[0], value, path)
        else:
            tried = [self.attempt(one, value, path) for one in fitting]
            mistakes, parsed = min(tried, key=lambda one: len(one[0]))
            self.parsed |= parsed
            yield from mistakes

    def attempt(self, kind: inspect.Type, value: Plain, path: Path) -> tuple[list[Mistake], dict[Path, object]]:
        """Return the mistakes and parsed values of one member of a union, which may not be the one that is meant."""
        walk = _Walk(self.document)
        return list(walk.check(kind, value, path)), walk.parsed

    def tagged(self, kinds: list[inspect.StructType], value: dict[str, Plain], path: Path) -> Iterator[Mistake]:
        """Choose among several structs by the tag."""
        tag_field = str(kinds[0].tag_field)
        chosen = [one for one in kinds if tag_field in value and one.tag == value[tag_field]]
        if chosen:
            yield from self.struct(chosen[0], value, path)
        elif tag_field in value:
            yield self.choice((*path, tag_field), value[tag_field], [one.tag for one in kinds])
        else:
            known = dict.fromkeys([tag_field, *(field.encode_name for one in kinds for field in one.fields)])
            for name in (name for name in value if name not in known):
                yield self.mistake((*path, name), f"unknown field {plain.shown(name)}; {suggest(name, known)}")
            tags = ", ".join(str(one.tag) for one in kinds)
            yield self.mistake((*path, tag_field), f"required field is missing; choose from {tags}")

    def struct(self, kind: inspect.StructType, value: dict[str, Plain], path: Path) -> Iterator[Mistake]:
        fields = {one.encode_name: one for one in kind.fields}
        valid = [*fields, *([kind.tag_field] if kind.tag_field else [])]
        meant = set()
        for name, item in value.items():
            if name in fields:
                yield from self.check(fields[name].type, item, (*path, name))
            elif name not in valid:
                meant.add(nearest(name, valid))
                yield self.mistake((*path, name), f"unknown field {plain.shown(name)}; {suggest(name, valid)}")
            elif item != kind.tag:
                yield self.choice((*path, name), item, [kind.tag])
        for name, one in fields.items():
            if one.required and name not in value and name not in meant:
                yield self.mistake((*path, name), "required field is missing")
