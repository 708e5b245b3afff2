"""
Batsim's external events: one JSON object a line.

    {"type": "machine_unavailable", "resources": "0-4 6", "timestamp": 10}     the nodes are cordoned
    {"type": "machine_available", "resources": "0-4", "timestamp": 90}         and schedulable again
    {"type": "generic", "timestamp": 10, "data": "…"}               version 5: the same, as text in `data`

As in Batsim, pods that run on an unavailable machine keep running. Events of other types are only passed on to a
decision process. The lines may have any order.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import msgspec

from lamina.model.duration import LONGEST
from lamina.model.errors import InputError, Mistake
from lamina.simulator.workloads.batsim_source import BatsimNotice, HostAvailability
from lamina.simulator.workloads.imports import import_files
from lamina.simulator.workloads.imports.pod_drafts import TraceWindow
from lamina.wire.batsim.interval_sets import read_intervals

UNAVAILABLE: Final = "machine_unavailable"
AVAILABLE: Final = "machine_available"
GENERIC: Final = "generic"
MOST_EVENTS: Final = 1_000_000
MOST_HOSTS: Final = 1_000_000


class ExternalEvents(msgspec.Struct, frozen=True):
    """The events of one file, in order of time."""

    hosts: tuple[HostAvailability, ...] = ()
    notices: tuple[BatsimNotice, ...] = ()
    last: float = 0.0
    """Time of the last event."""


class _Line(msgspec.Struct, frozen=True):
    type: str
    timestamp: Annotated[float, msgspec.Meta(ge=0, le=LONGEST)]
    resources: str = ""
    data: str = ""


class _Inner(msgspec.Struct, frozen=True):
    type: str = ""
    resources: str = ""


_LINES: Final = msgspec.json.Decoder(_Line)
_INNER: Final = msgspec.json.Decoder(_Inner)


def read_events(path: Path, window: TraceWindow) -> ExternalEvents:
    """Return the events of a file inside *window*. Raises InputError with the mistakes of all lines."""
    mistakes: list[Mistake] = []
    found: list[HostAvailability | BatsimNotice] = []
    for number, line in import_files.lines(path):
        if not line.strip():
            continue
        if number > MOST_EVENTS:
            raise InputError.one(str(path), f"has more than {MOST_EVENTS} events; split the file", line=number)
        try:
            found += _event(line, number, window)
        except ValueError as error:
            what, _, where = str(error).partition(" - at `$")
            mistakes += InputError.one(str(path), what, path=where.strip("`."), line=number).mistakes
            if len(mistakes) >= import_files.MOST_MISTAKES:
                break
    if mistakes:
        raise InputError(mistakes)
    found.sort(key=lambda one: one.at)
    return ExternalEvents(
        tuple(one for one in found if isinstance(one, HostAvailability)),
        tuple(one for one in found if isinstance(one, BatsimNotice)),
        max((one.at for one in found), default=0.0),
    )


def _event(line: bytes, number: int, window: TraceWindow) -> Iterator[HostAvailability | BatsimNotice]:
    """Yield the event of a line, unless the window ends before. Raises ValueError."""
    try:
        event = _LINES.decode(line)
    except RecursionError as error:
        raise ValueError("is nested too deep") from error
    placed = window.place(event.timestamp, None)
    if placed is None:
        return
    kind, resources = event.type, event.resources
    if kind == GENERIC and event.data:
        inner = _inner(event.data)
        kind, resources = inner.type, inner.resources
    if kind in (UNAVAILABLE, AVAILABLE):
        if not resources:
            raise ValueError("says not which machines; add resources - at `$.resources`")
        yield HostAvailability(placed[0], read_intervals(resources, MOST_HOSTS), kind == AVAILABLE, number)
    else:
        yield BatsimNotice(placed[0], msgspec.Raw(msgspec.json.format(bytes(line), indent=-1)))


def _inner(text: str) -> _Inner:
    """Return what the text of a generic event says; any other text than a JSON object says nothing."""
    try:
        return _INNER.decode(text)
    except (ValueError, RecursionError):
        return _Inner()
