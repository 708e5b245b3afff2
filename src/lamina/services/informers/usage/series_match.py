"""
Which series belongs to which node: the step at which most installations of load-aware schedulers go wrong.

A series says whose it is by a label: `node`, `nodename` or `kubernetes_node` where somebody has relabelled it, else the
host part of `instance`. A node goes by its name, by its label kubernetes.io/hostname, and by its addresses. A series that
names a node which is not here belongs to nobody, whatever its `instance`: addresses are the same in many clusters. Where
none is named and the `instance` does not fit, the name that the machine gave node-exporter (node_uname_info) is tried. A
value by which two nodes go says nothing. Where two series claim one node, the one with the more trustworthy label counts,
and the others are passed over.

Small and capital letters do not count, nor does a dot at the end of a name. Pure.
"""

import functools
import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from lamina.model.node import Node
from lamina.model.plain import plural
from lamina.services.informers.usage.queries import LABELS
from lamina.services.informers.usage.usage_source import some

HOSTNAME: Final = "kubernetes.io/hostname"
INSTANCE: Final = LABELS.index("instance")
"""The last of the labels; those before it name a node outright."""

SeriesOwner = tuple[str, ...]
"""The values of `LABELS` that a series has, in that order; empty where it lacks one."""


def series_owner(labels: Mapping[str, str]) -> SeriesOwner:
    """Take from the labels of a series what says whose it is."""
    return tuple(labels.get(name, "") for name in LABELS)


class SeriesMatch(msgspec.Struct, frozen=True):
    """Which series are which node's."""

    series: dict[str, SeriesOwner]
    """By node."""
    lacking: tuple[str, ...]
    """Nodes without a series."""
    strangers: tuple[SeriesOwner, ...]
    """Series without a node."""
    doubled: int = 0
    """Series of nodes that have a better one."""


def merge_matches(matches: Sequence[SeriesMatch]) -> SeriesMatch:
    """Put together what was matched for several questions: a node lacks a series if it has none for any of them."""
    series: dict[str, SeriesOwner] = {}
    for one in matches:
        series = {**one.series, **series}
    return SeriesMatch(
        series,
        tuple(sorted(set.intersection(*(set(one.lacking) for one in matches)))),
        tuple(sorted({stranger for one in matches for stranger in one.strangers})),
        max(one.doubled for one in matches),
    )


class NodeDirectory:
    """The names that nodes go by."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        """List every node under all of its names; its own name is never anybody else's."""
        self._nodes = nodes
        self._by_name: dict[str, str] = {}
        tiers: tuple[dict[str, set[str]], ...] = ({}, {}, {})
        for name, node in nodes.items():
            tiers[0].setdefault(plain(name), set()).add(name)
            if host := node.labels.get(HOSTNAME):
                tiers[1].setdefault(plain(host), set()).add(name)
            for address in node.addresses:
                tiers[2].setdefault(plain(address), set()).add(name)
        for tier in reversed(tiers):
            for called, names in tier.items():
                if len(names) == 1:
                    self._by_name[called] = min(names)
                else:
                    self._by_name.pop(called, None)

    def match(self, seen: Iterable[SeriesOwner], calls_itself: Mapping[str, str] | None = None) -> SeriesMatch:
        """Find the node of each series; *calls_itself* are names by `instance`, as node_uname_info tells them."""
        claims: dict[str, list[tuple[int, SeriesOwner]]] = {}
        strangers: list[SeriesOwner] = []
        for one in sorted(set(seen)):
            found = self._find(one, calls_itself or {})
            if found is None:
                strangers.append(one)
            else:
                claims.setdefault(found[0], []).append((found[1], one))
        return SeriesMatch(
            {name: min(claims[name])[1] for name in sorted(claims)},
            tuple(name for name in sorted(self._nodes) if name not in claims),
            tuple(strangers),
            sum(len(each) - 1 for each in claims.values()),
        )

    def _find(self, one: SeriesOwner, calls_itself: Mapping[str, str]) -> tuple[str, int] | None:
        """Return a node, and how far its label is from the best."""
        for rank, value in enumerate(one):
            if rank == INSTANCE and any(one[:rank]):
                return None
            for called in names_in(value) if value else ():
                if called in self._by_name:
                    return self._by_name[called], rank
        instance = one[INSTANCE]
        node = self._by_name.get(plain(calls_itself.get(instance, "")))
        return None if node is None else (node, len(LABELS))


@functools.lru_cache(maxsize=65_536)  # the same names come with every look
def plain(name: str) -> str:
    """Write a name so that equal ones look equal; addresses in their shortest form."""
    called = name.strip().rstrip(".").lower()
    try:
        return str(ipaddress.ip_address(called)) if called.count(":") > 1 else called
    except ValueError:
        return called


@functools.lru_cache(maxsize=65_536)
def names_in(value: str) -> tuple[str, ...]:
    """Take from a label's value what a node may go by: all of it, or the host in it."""
    return plain(value), host_part(value)


def host_part(instance: str) -> str:
    """Take the host out of ``host:port``, ``[::1]:port`` or a whole address with a scheme."""
    rest = instance.rpartition("://")[2].partition("/")[0]
    if rest.startswith("["):
        return plain(rest[1:].partition("]")[0])
    host, colon, port = rest.rpartition(":")
    return plain(host if colon and port.isdigit() and ":" not in host else rest)


def describe_unmatched(matched: SeriesMatch, nodes: Mapping[str, Node]) -> str:
    """Say what is lacking, and what was seen instead; empty when nothing is."""
    if not matched.lacking:
        return ""
    if matched.series:
        known = f"{len(matched.series)} of {plural(len(nodes), 'node is', 'nodes are')} measured, not {some(matched.lacking)}"
        return f"{known}{of_no_node(matched)}"
    if not matched.strangers:
        return "there are no series at all: is node-exporter scraped, and do the queries fit its metrics?"
    wanted = some(f"{name} ({'/'.join(nodes[name].addresses[:3]) or 'no address'})" for name in matched.lacking)
    return (
        f"no series belongs to a node: seen {_shown(matched.strangers)}; wanted {wanted}: "
        "relabel the scrape job so that a label `node` has the node's name"
    )


def of_no_node(matched: SeriesMatch) -> str:
    """Name series without a node, as the end of a line; empty when there are none."""
    return f"; series of no node: {_shown(matched.strangers)}" if matched.strangers else ""


def _shown(strangers: Iterable[SeriesOwner]) -> str:
    return some(
        next((f'{label}="{value}"' for label, value in zip(LABELS, one, strict=True) if value), "no such label")
        for one in strangers
    )
