"""
Plan of annotation writes: which nodes need one.

Many controllers watch Node objects, so they are written seldom. A write is due when a value differs from its annotation
by a step, or when the annotation is older than the refresh time. It is also due when a node has had no values for so
long that its annotations would mislead. All values of a node are written together.

The stamp is the time at which all annotations of a node were valid. While some of the values are unknown, the others
are written without a new stamp. When the stamp is too old, the annotations of unknown values are removed. Annotations
without our stamp were written by another program; they are only removed on request.

A round may be too short for all writes. The order is: misleading annotations; those that have waited for twice the
refresh time, so that every node gets its turn; then the largest differences. A node whose last write was rejected comes
after all others, until it has waited as long.

Pure.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from lamina.clients.kube.api_timestamps import whole_time
from lamina.model.node import Node
from lamina.services.annotator.node_values import DesiredNumber, DesiredValues
from lamina.services.informers.usage.usage_source import SKEW
from lamina.wire.timestamps import seconds

REFRESH: Final = 600.0
FORGET: Final = 1800.0
LATE: Final = 2.0
"""Refresh times after which a write is due before larger differences of other nodes."""

# Reasons for a write.
MOVED: Final = "moved"
OLD: Final = "old"
UNKNOWN: Final = "unknown"
ASKED: Final = "asked"


class WriteRules(msgspec.Struct, frozen=True, kw_only=True):
    """When a node needs a write."""

    keys: tuple[str, ...]
    """Every annotation that may be ours."""
    stamp: str
    """The annotation with the time of the values."""
    refresh: float = REFRESH
    """Seconds after which unchanged values are written again, to show that they are still valid."""
    forget: float = FORGET
    """Seconds after which the annotations of a node without values are removed."""


class AnnotationWrite(msgspec.Struct, frozen=True):
    """The write of one node's annotations."""

    node: str
    uid: str
    annotations: dict[str, str | None]
    """None removes an annotation."""
    why: str


def plan(
    nodes: Mapping[str, Node],
    wanted: Mapping[str, DesiredValues],
    now: float,
    rules: WriteRules,
    refused: Mapping[str, float] = MappingProxyType({}),
) -> list[AnnotationWrite]:
    """Return the writes that are needed, most urgent first; *refused* has when each node's last write was rejected."""
    late = LATE * rules.refresh
    due: list[tuple[tuple[int, float, str], AnnotationWrite]] = []
    for name in sorted(nodes):
        node, new = nodes[name], wanted.get(name)
        age = age_of(node.annotations.get(rules.stamp), now)
        change, moved = _forgotten(node, age, rules) if new is None else _renewed(node, new, age, rules)
        if change is None:
            continue
        if name in refused:
            waited = now - refused[name]
            turn = (1 if waited >= late else 3, -waited)
        elif change.why == UNKNOWN:
            turn = (0, -age)
        else:
            # A write without a stamp keeps the age, so it would come first in every round.
            turn = (1, -age) if age >= late and rules.stamp in change.annotations else (2, -moved)
        due.append(((*turn, name), change))
    return [change for _, change in sorted(due, key=lambda one: one[0])]


def removals(nodes: Mapping[str, Node], rules: WriteRules) -> list[AnnotationWrite]:
    """Return the writes that remove all annotations."""
    found = ((node, _off(node.annotations, rules)) for _, node in sorted(nodes.items()))
    return [AnnotationWrite(node.name, node.uid, off, ASKED) for node, off in found if off]


def distance(found: Mapping[str, str], numbers: Mapping[str, DesiredNumber]) -> float:
    """Return the largest difference between annotations and values, in steps; infinity if an annotation is missing."""
    farthest = 0.0
    for key, number in numbers.items():
        before = number_in(found.get(key))
        if before is None:
            return math.inf
        farthest = max(farthest, abs(number.value - before) / number.step)
    return farthest


def number_in(text: str | None) -> float | None:
    """Parse an annotation; None if it is missing or not a finite number."""
    try:
        value = float(text) if text is not None and len(text) <= 64 else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def age_of(stamp: str | None, now: float) -> float:
    """Return the age of a stamp in seconds; infinity if it is missing, invalid or too far in the future."""
    try:
        at = seconds(stamp)
    except ValueError:
        return math.inf
    return max(now - at, 0.0) if stamp and at - now <= SKEW else math.inf


def _renewed(node: Node, new: DesiredValues, age: float, rules: WriteRules) -> tuple[AnnotationWrite | None, float]:
    """Return the write for a node with values, or None if it is not needed, and the difference in steps."""
    found, ours = node.annotations, rules.stamp in node.annotations
    kept = [key for key in new.unknown if key in found] if ours and age <= rules.forget else []
    there = [key for key in rules.keys if ours and key in found]
    surplus = [key for key in there if key not in new.numbers and key not in kept]
    moved = math.inf if surplus else distance(found, new.numbers)
    if moved < 1 and (kept or age < rules.refresh):
        return None, moved
    written: dict[str, str | None] = dict.fromkeys(surplus)
    written |= {key: str(one.value) for key, one in new.numbers.items()}
    if not kept:
        written[rules.stamp] = whole_time(new.observed_at)
    return AnnotationWrite(node.name, node.uid, written, MOVED if moved >= 1 else OLD), moved


def _forgotten(node: Node, age: float, rules: WriteRules) -> tuple[AnnotationWrite | None, float]:
    """Return the write that removes the annotations of a node without values, if they have expired."""
    if rules.stamp not in node.annotations or age <= rules.forget:
        return None, 0.0
    return AnnotationWrite(node.name, node.uid, _off(node.annotations, rules), UNKNOWN), 0.0


def _off(found: Mapping[str, str], rules: WriteRules) -> dict[str, str | None]:
    return {key: None for key in (*rules.keys, rules.stamp) if key in found}
