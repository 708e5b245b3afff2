"""
SimGrid platforms: the hosts of a Batsim workload, as nodes.

    <host id="…" speed="1Gf" core="4"> <prop id="memory" value="4Gi"/> </host>
    <cluster id="…" prefix="a" radical="0-15" suffix="" speed="1Gf" core="4"/>

Hosts with the role ``master`` or ``storage`` do not become nodes. Links and routes are ignored, because the registry
is not part of the platform. The XML reader has limits. It rejects entity declarations and never fetches the document
type that every platform names.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.parsers import expat

import msgspec

from lamina.model import quantity, resources
from lamina.model.errors import InputError
from lamina.model.plain import shown
from lamina.model.resources import CPU, MEMORY, PODS
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.workloads.imports import import_files
from lamina.simulator.workloads.imports.import_schema import ImportContext
from lamina.simulator.workloads.imports.pod_drafts import USUAL_PODS, UniqueNames

MOST_HOSTS: Final = 100_000
DEEPEST: Final = 64
USUAL_MEMORY: Final = "4Gi"
NOT_NODES: Final = ("master", "storage")

_SPEED: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?)\s*([kMGTPE]?)f?")
_UNITS: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_RADICAL: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


class SimgridPlatform(msgspec.Struct, frozen=True):
    """The hosts of a platform file, as nodes."""

    nodes: tuple[VirtualNodeSpec, ...]
    speed: float
    """Operations per second of the slowest host."""


class _Element(msgspec.Struct):
    """A host or cluster element that is still open."""

    kind: str
    attributes: dict[str, str]
    line: int
    properties: dict[str, str] = {}


def read_platform(path: Path, context: ImportContext) -> SimgridPlatform:
    """Return the hosts of a platform file. Raises InputError with line and reason."""
    reader = _HostReader(str(path), context)
    reader.read(import_files.content(path))
    if not reader.nodes:
        raise InputError.one(str(path), "has no host that runs jobs; add <host> or <cluster> elements")
    return SimgridPlatform(tuple(reader.nodes), min(reader.speeds))


class _HostReader:
    """Converts XML elements to nodes."""

    def __init__(self, source: str, context: ImportContext) -> None:
        self.source, self.context = source, context
        self.nodes: list[VirtualNodeSpec] = []
        self.speeds: list[float] = []
        self._open: list[_Element] = []
        self._depth = 0
        self._names = UniqueNames()
        self._ids: dict[str, int] = {}
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.EntityDeclHandler = self._entity

    def read(self, data: bytes) -> None:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            message = f"is not a platform in XML ({expat.ErrorString(error.code)}): was it cut short?"
            raise InputError.one(self.source, message, line=error.lineno) from error
        except (LookupError, ValueError) as error:
            raise InputError.one(self.source, f"is not a platform in XML ({error})") from error

    def wrong(self, message: str, line: int = 0) -> InputError:
        return InputError.one(self.source, message, line=line or self._parser.CurrentLineNumber)

    def _entity(self, name: str, *_: object) -> None:
        raise self.wrong(f"declares an entity {shown(name)}; write its text where it is used")

    def _start(self, kind: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.wrong(f"nested too deep; at most {DEEPEST} levels are read")
        if kind in ("host", "cluster"):
            self._open.append(_Element(kind, attributes, self._parser.CurrentLineNumber, {}))
        elif kind == "prop" and self._open:
            self._open[-1].properties[attributes.get("id", "")] = attributes.get("value", "")

    def _end(self, kind: str) -> None:
        self._depth -= 1
        if self._open and self._open[-1].kind == kind:
            element = self._open.pop()
            if element.properties.get("role") not in NOT_NODES:
                self._add(element)

    def _add(self, element: _Element) -> None:
        core = element.properties.get("core") or element.attributes.get("core") or "1"
        memory = element.properties.get("memory") or USUAL_MEMORY
        try:
            allocatable = resources.amounts({CPU: core, MEMORY: memory, PODS: USUAL_PODS})
        except quantity.QuantityError as error:
            raise self.wrong(str(error), element.line) from error
        if any(amount <= 0 for _, amount in allocatable):
            raise self.wrong("a host needs cores and memory; write more than 0", element.line)
        self.speeds.append(self._speed(element))
        for name in self._hosts(element):
            if name in self._ids:
                raise self.wrong(f"there is a second host {shown(name)}, the first is on line {self._ids[name]}")
            if len(self.nodes) >= MOST_HOSTS:
                raise self.wrong(f"more than {MOST_HOSTS} hosts", element.line)
            self._ids[name] = element.line
            node = msgspec.structs.replace(self.context.like, name=self._names.fresh(name), allocatable=allocatable)
            self.nodes.append(node)

    def _speed(self, element: _Element) -> float:
        # Several speeds are power states; the first is the default.
        text = (element.attributes.get("speed") or element.attributes.get("power") or "").split(",")[0].strip()
        parts = _SPEED.fullmatch(text) if len(text) <= quantity.MAX_LENGTH else None
        speed = float(parts.group(1)) * _UNITS[parts.group(2)] if parts else 0.0
        if not 0.0 < speed < 1e30:
            raise self.wrong(f"speed {shown(text)} is not understood; write for example 1Gf", element.line)
        return speed

    def _hosts(self, element: _Element) -> Iterator[str]:
        if element.kind == "host":
            if not element.attributes.get("id"):
                raise self.wrong("a host has no id", element.line)
            yield element.attributes["id"]
            return
        prefix, suffix = element.attributes.get("prefix", ""), element.attributes.get("suffix", "")
        radical = element.attributes.get("radical", "")
        for part in radical.split(","):
            bounds = _RADICAL.fullmatch(part.strip())
            if bounds is None:
                raise self.wrong(f"radical {shown(radical)} is not understood; write for example 0-15", element.line)
            first = int(bounds.group(1))
            for number in range(first, int(bounds.group(2) or first) + 1):
                yield f"{prefix}{number}{suffix}"
