"""
YAML written by users, as plain data with the line of each value.

Readers of scenarios and configurations pass the text here and the result to `lamina.model.conversion`. This module
opens no file and does not know the meaning of fields. `lamina.model.plain` defines the value of unquoted text.

    stops the reading      text that is not YAML, is too large, too deep, or too much once aliases are expanded
    noted, reading on      a field written twice, a name that is not text, an alias without an anchor, and what is
                           not part of YAML's core: other tags, merge keys (<<)

Noted mistakes are kept in the document, so that the user sees them together with the mistakes that `conversion` finds.
The reader uses parser events and not PyYAML's composer, whose recursion crashes the process on deep nesting.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import yaml

from lamina.model import plain
from lamina.model.errors import InputError, Mistake
from lamina.model.plain import Path, Plain

MAX_BYTES: Final = 16 * 1024 * 1024
MAX_NESTING: Final = 64
MAX_NODES: Final = 200_000
"""Names and values in one text, with aliases expanded."""

LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_CORE: Final = "tag:yaml.org,2002:"
_MISALIGNED: Final = "this line does not line up with the lines above it; check the indentation"
_UNCLOSED: Final = "a value or a ',' is missing, or a bracket is never closed"
_PLAINLY: Final = (
    ("cannot start any token", "no value starts with this character; indent with spaces, not tabs, and quote text"),
    ("mapping values are not allowed", "a ':' where no field can start; check the indentation, or quote the text"),
    ("sequence entries are not allowed", "a list cannot start on the line of its name: begin a new line"),
    ("<block end>", _MISALIGNED),
    ("did not find expected key", _MISALIGNED),
    ("'-' indicator", _MISALIGNED),
    ("expected ':'", "the name of a field must be followed by ': '"),
    ("',' or", _UNCLOSED),
    ("node content", _UNCLOSED),
    ("unexpected end of stream", "a quote is opened and never closed"),
    ("document start", "the data ended above this line; check the indentation"),
)
"""Part of an error message of either PyYAML parser → message for the user."""


@dataclass(frozen=True, slots=True)
class YamlNode:
    """One value of a document with its line and its children."""

    value: Plain
    line: int
    written: str = ""
    """The unquoted text it was read from."""
    inside: dict[str | int, "YamlNode"] = field(default_factory=dict)
    size: int = 1  # all names and values in it, and itself
    height: int = 0  # levels of lists and mappings


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One YAML document."""

    source: str
    root: YamlNode
    mistakes: tuple[Mistake, ...] = ()
    """Mistakes in the YAML itself; `lamina.model.conversion` adds mistakes in the meaning."""

    @property
    def data(self) -> Plain:
        """The content, read-only because aliases share it. Raises InputError if there are mistakes."""
        if self.mistakes:
            raise InputError(self.mistakes)
        return self.root.value

    def at(self, path: Path) -> YamlNode:
        """Return the node at *path*, or its nearest ancestor."""
        place = self.root
        for step in path:
            if step not in place.inside:
                break
            place = place.inside[step]
        return place

    def line(self, path: Path) -> int:
        """
        Return the line of the node at *path*, or of its nearest ancestor.

        The line of a field is that of its name.
        """
        return self.at(path).line


def read_yaml(text: str, source: str) -> YamlDocument:
    """Return the only document of *text*; empty documents around it are ignored. Raises InputError."""
    document, *others = read_yaml_all(text, source)
    if others:
        message = "a second document starts here, and this file may hold only one; remove it, or the --- before it"
        raise InputError([*document.mistakes, Mistake(source, message, line=others[0].root.line)])
    return document


def read_yaml_all(text: str, source: str) -> list[YamlDocument]:
    """Return all documents of *text*, without empty ones. Raises InputError if there are none."""
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise InputError.one(source, f"too large; at most {MAX_BYTES // 1024**2} MiB are read")
    if strange := yaml.reader.Reader.NON_PRINTABLE.search(text):
        message = f"character U+{ord(strange.group()):04X} is not allowed in YAML; is this a text file?"
        raise InputError.one(source, message, line=text.count("\n", 0, strange.start()) + 1)
    documents = list(_YamlReader(text, source).documents())
    if not documents:
        raise InputError.one(source, "nothing in it: the file is empty or holds only comments", line=1)
    return documents


def _foreign(tag: str) -> str:
    return f"tag {plain.shown(tag.replace(_CORE, '!!'))} does not fit or is not understood; remove it"


class _YamlReader:
    """Builds documents from parser events; notes mistakes where reading can go on, and raises otherwise."""

    def __init__(self, text: str, source: str) -> None:
        self.source, self.left = source, MAX_NODES
        self.lines = max(1, len(text.splitlines()))
        self.events: Iterator[yaml.Event] = yaml.parse(text, Loader=LOADER)
        self.mistakes: list[Mistake] = []
        self.anchors: dict[str, YamlNode | None] = {}
        self.path: list[str | int] = []

    def documents(self) -> Iterator[YamlDocument]:
        reported = 0
        while not isinstance(event := self.next(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                self.anchors.clear()
                root = self.place(event := self.next())
                if not isinstance(event, yaml.ScalarEvent) or event.value or root.value is not None:
                    yield YamlDocument(self.source, root, tuple(self.mistakes[reported:]))
                reported = len(self.mistakes)

    def next(self) -> yaml.Event:
        try:
            return next(self.events)
        except yaml.MarkedYAMLError as error:
            problem = " ".join((error.problem or error.context or "it cannot be read").split())
            message = next((plainly for theirs, plainly in _PLAINLY if theirs in problem), problem)
            opened, mark = error.context_mark, error.problem_mark or error.context_mark
            line = min(mark.line + 1, self.lines) if mark else 0
            since = f" (inside what begins on line {opened.line + 1})" if opened and opened.line + 1 < line else ""
            raise self.refusal(f"not valid YAML: {message}{since}", line) from None
        except (yaml.YAMLError, ValueError) as error:
            raise self.refusal(f"not valid YAML: {' '.join(str(error).split())}", 0) from None

    def refusal(self, message: str, line: int) -> InputError:
        return InputError([*self.mistakes, Mistake(self.source, message, line=line)])

    def note(self, message: str, line: int) -> None:
        self.mistakes.append(Mistake(self.source, message, plain.written_path(tuple(self.path)), line))

    def spend(self, nodes: int, height: int, line: int) -> None:
        """Count nodes and nesting against the limits. Raises InputError."""
        self.left -= nodes
        if self.left < 0:
            raise self.refusal(f"too much in it; at most {MAX_NODES} values are read, aliases written out", line)
        if len(self.path) + height > MAX_NESTING:
            raise self.refusal(f"nested too deep; at most {MAX_NESTING} levels are read", line)

    def place(self, event: yaml.Event) -> YamlNode:
        """Build the node that begins with *event*."""
        line = event.start_mark.line + 1 if event.start_mark else 0
        anchor = getattr(event, "anchor", None) or ""
        if isinstance(event, yaml.AliasEvent):
            return self.alias(anchor, line)
        self.anchors[anchor] = None
        place = self.scalar(event, line) if isinstance(event, yaml.ScalarEvent) else self.collection(event, line)
        self.anchors[anchor] = place
        return place

    def alias(self, name: str, line: int) -> YamlNode:
        """Return the node that an anchor names; its content keeps its own lines."""
        known = self.anchors.get(name)
        if known is None:
            why = "stands inside what it names" if name in self.anchors else f"has no &{name} above it"
            self.note(f"*{name} {why}", line)
            return YamlNode(None, line)
        self.spend(known.size, known.height, line)
        return replace(known, line=line)

    def scalar(self, event: yaml.ScalarEvent, line: int) -> YamlNode:
        """Read one scalar: quoted is text, unquoted has the value it looks like, tagged has the type of the tag."""
        self.spend(1, 0, line)
        unquoted = event.implicit[0] and not event.tag
        if event.tag in ("!", f"{_CORE}str") or not (unquoted or event.tag):
            return YamlNode(event.value, line)
        try:
            value = plain.scalar(event.value)
        except ValueError as error:
            self.note(str(error), line)
            return YamlNode(event.value, line)
        if event.tag == f"{_CORE}float" and type(value) is int:
            value = float(value)
        if event.tag and event.tag != _CORE + ("null" if value is None else type(value).__name__):
            self.note(_foreign(event.tag), line)
        return YamlNode(value, line, written=event.value)

    def collection(self, event: yaml.Event, line: int) -> YamlNode:
        before, is_list = self.left, isinstance(event, yaml.SequenceStartEvent)
        self.spend(1, 1, line)
        if (tag := getattr(event, "tag", None)) not in (None, "!", _CORE + ("seq" if is_list else "map")):
            self.note(_foreign(tag), line)
        inside = self.items() if is_list else self.fields()
        items = [one.value for one in inside.values()]
        value: Plain = items if is_list else dict(zip(map(str, inside), items, strict=True))
        height = 1 + max((one.height for one in inside.values()), default=0)
        return YamlNode(value, line, inside=inside, size=before - self.left, height=height)

    def items(self) -> dict[str | int, YamlNode]:
        inside: dict[str | int, YamlNode] = {}
        while not isinstance(event := self.next(), yaml.SequenceEndEvent):
            self.path.append(len(inside))
            inside[len(inside)] = self.place(event)
            self.path.pop()
        return inside

    def fields(self) -> dict[str | int, YamlNode]:
        inside: dict[str | int, YamlNode] = {}
        while not isinstance(event := self.next(), yaml.MappingEndEvent):
            self.path.append("?")
            key = self.place(event)
            name = self.name(key)
            value = self.place(self.next())
            if name in inside:
                self.note(f"written twice in one mapping, first on line {inside[name].line}", key.line)
            else:
                inside[name] = replace(value, line=key.line)
            self.path.pop()
        return inside

    def name(self, key: YamlNode) -> str:
        """Return the name of a field, which must be text."""
        self.path[-1] = name = key.value if isinstance(key.value, str) else key.written or "?"
        if key.height:
            self.note("the name of a field cannot be a list or a mapping", key.line)
        elif not isinstance(key.value, str):
            self.note("YAML does not read this name as text; put it in quotes", key.line)
        elif key.written == "<<":
            self.note("merge keys (<<) are not read; write the fields out", key.line)
        return name
