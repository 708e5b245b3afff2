"""
Which nodes are worth a write.

A Node object is watched by every kubelet's neighbour and every controller, so it is written seldom: when a number is a
step away from the one that stands there, when what stands there is older than the refresh time, and when nothing has
been known of the node for so long that an old number would mislead. Then all of a node's numbers are written together.

The stamp says when all that stands there was so. While something of it is not known, the rest is written without a new
stamp; once the stamp is too old, what is not known is taken off. A node without our stamp was written by somebody else, and
nothing is taken off it unless asked to.

A round may be too short for all. What misleads comes first; then what waited for twice the refresh time, so that everything
gets its turn; then what is farthest from what stands there. A node that refused its last write has its turn after all others,
until it waited as long.

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
"""Refresh times after which a write waits no longer for others that are farther off."""

# Why a node is written.
MOVED: Final = "moved"
OLD: Final = "old"
UNKNOWN: Final = "unknown"
ASKED: Final = "asked"


class WriteRules(msgspec.Struct, frozen=True, kw_only=True):
    """When a node is worth a write."""

    keys: tuple[str, ...]
    """Every annotation that may be ours."""
    stamp: str
    """The one that says when."""
    refresh: float = REFRESH
    """Seconds after which numbers that have not moved are written again, so that everybody sees they are still so."""
    forget: float = FORGET
    """Seconds after which the numbers of a node of which nothing is known are taken off."""


class AnnotationWrite(msgspec.Struct, frozen=True):
    """One write."""

    node: str
    uid: str
    annotations: dict[str, str | None]
    """None takes one off."""
    why: str


def plan(
    nodes: Mapping[str, Node],
    wanted: Mapping[str, DesiredValues],
    now: float,
    rules: WriteRules,
    refused: Mapping[str, float] = MappingProxyType({}),
) -> list[AnnotationWrite]:
    """List the writes that are worth it, the most urgent first; *refused* says when nodes refused their last one."""
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
            # A write without a stamp leaves the age as it is, and would come first again and again.
            turn = (1, -age) if age >= late and rules.stamp in change.annotations else (2, -moved)
        due.append(((*turn, name), change))
    return [change for _, change in sorted(due, key=lambda one: one[0])]


def removals(nodes: Mapping[str, Node], rules: WriteRules) -> list[AnnotationWrite]:
    """List the writes that take everything off again."""
    found = ((node, _off(node.annotations, rules)) for _, node in sorted(nodes.items()))
    return [AnnotationWrite(node.name, node.uid, off, ASKED) for node, off in found if off]


def distance(found: Mapping[str, str], numbers: Mapping[str, DesiredNumber]) -> float:
    """Say how far the farthest number is from what should stand there, in steps; one that is missing is infinitely far."""
    farthest = 0.0
    for key, number in numbers.items():
        before = number_in(found.get(key))
        if before is None:
            return math.inf
        farthest = max(farthest, abs(number.value - before) / number.step)
    return farthest


def number_in(text: str | None) -> float | None:
    """Read an annotation; None when there is none, or no number in it."""
    try:
        value = float(text) if text is not None and len(text) <= 64 else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def age_of(stamp: str | None, now: float) -> float:
    """Say how old a stamp is; infinitely old when there is none, or one that cannot be."""
    try:
        at = seconds(stamp)
    except ValueError:
        return math.inf
    return max(now - at, 0.0) if stamp and at - now <= SKEW else math.inf


def _renewed(node: Node, new: DesiredValues, age: float, rules: WriteRules) -> tuple[AnnotationWrite | None, float]:
    """Say what is to be written on a node of which something is known, if that is worth it, and how far it has moved."""
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
    """Take everything off a node of which nothing has been known for too long."""
    if rules.stamp not in node.annotations or age <= rules.forget:
        return None, 0.0
    return AnnotationWrite(node.name, node.uid, _off(node.annotations, rules), UNKNOWN), 0.0


def _off(found: Mapping[str, str], rules: WriteRules) -> dict[str, str | None]:
    return {key: None for key in (*rules.keys, rules.stamp) if key in found}
