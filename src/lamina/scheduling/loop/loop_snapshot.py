"""
Everything a loop knows, as data: taken from one loop, put into a fresh one that has the same profiles.

    loop ──snapshot──> LoopSnapshot ──pieces──> bytes ──assemble──> LoopSnapshot ──restore──> fresh loop

The fresh loop answers to the same events with the same commands. A snapshot is shallow: it shares pods, nodes, reports and
images with the loop, so that taking one costs a pass over the objects and no copies of them. Not part of it: evaluations
that are kept to save time (an evaluation that was kept equals a fresh one), what plugins keep to themselves
(`what_is_lost`), and commands that were not handed out yet.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, get_origin

import msgspec

from lamina.model.errors import LaminaError
from lamina.scheduling.contract.points import PodFollower, TimedPlugin
from lamina.scheduling.loop.binding_cycle import BindingCycleSnapshot
from lamina.scheduling.loop.queue_snapshot import QueueSnapshot
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.cluster_state import ClusterSnapshot

OWN: Final = "lamina."
"""The package of plugins that keep nothing to themselves but what they can work out again."""
PIECE: Final = 1000
"""Items of a list that are encoded at a time."""


class SnapshotError(LaminaError):
    """A snapshot contradicts itself or does not fit the loop."""


class LoopSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a loop knows."""

    wake: float | None
    """When the loop last asked to be woken, if that time has not come."""
    changes: int
    cluster: ClusterSnapshot
    queue: QueueSnapshot
    underway: tuple[BindingCycleSnapshot, ...]


FIELDS: Final = {
    **{field.name: field.type for field in msgspec.structs.fields(LoopSnapshot) if field.name != "cluster"},
    **{f"cluster.{field.name}": field.type for field in msgspec.structs.fields(ClusterSnapshot)},
}
"""The parts of a snapshot, and what they consist of."""
LISTS: Final = frozenset(name for name, kind in FIELDS.items() if get_origin(kind) is tuple)


def pieces(snapshot: LoopSnapshot) -> Iterator[tuple[str, bytes]]:
    """Yield the parts of a snapshot as MessagePack, long lists in pieces: other threads get a turn in between."""
    for name in FIELDS:
        part, _, field = name.partition(".")
        value = getattr(snapshot, part)
        if field:
            value = getattr(value, field)
        if name in LISTS:
            for start in range(0, len(value), PIECE):
                yield name, msgspec.msgpack.encode(value[start : start + PIECE])
        else:
            yield name, msgspec.msgpack.encode(value)


def assemble(found: Iterable[tuple[str, bytes]]) -> LoopSnapshot:
    """Put the pieces of a snapshot together; raise `SnapshotError` when they make none."""
    # Any: each part has a type of its own.
    lists: dict[str, list[Any]] = {name: [] for name in LISTS}
    values: dict[str, Any] = {}
    for name, data in found:
        if name not in FIELDS or name in values:
            raise SnapshotError(f"the snapshot has a part {name!r:.40} that is not known or there twice")
        try:
            value = msgspec.msgpack.decode(data, type=FIELDS[name])
        except (ValueError, RecursionError) as error:
            raise SnapshotError(f"the snapshot cannot be read ({name}: {error})") from error
        if name in LISTS:
            lists[name].extend(value)
        else:
            values[name] = value
    values |= {name: tuple(items) for name, items in lists.items()}
    missing = sorted(FIELDS.keys() - values.keys())
    if missing:
        raise SnapshotError(f"the snapshot lacks {', '.join(missing)}")
    cluster = {name.partition(".")[2]: values.pop(name) for name in FIELDS if "." in name}
    return LoopSnapshot(cluster=ClusterSnapshot(**cluster), **values)


def check_rows(snapshot: LoopSnapshot) -> None:
    """See that no row is beyond those that nodes have: arrays are made as long as the highest row says."""
    cluster, inventory = snapshot.cluster, snapshot.cluster.inventory
    rows = chain(
        cluster.columns.spare,
        (use.row for use in cluster.usage.nodes if use.row != -1),
        (row for row, _, _ in cluster.usage.trust.ends),
        (row for row, _, _ in inventory.trust.ends),
        (node.row for node in inventory.nodes),
        (held.row for held in inventory.held),
        (told[0] for told in inventory.rates),
        (one.row for one in inventory.arrivals.arrivals),
        inventory.arrivals.busy,
        *(rows for _, rows in inventory.platforms.rows),
    )
    height = len(cluster.columns.nodes)
    beyond = next((row for row in rows if not 0 <= row < height), None)
    if beyond is not None:
        raise SnapshotError(f"the snapshot has something in row {beyond}, and {height} rows")


def what_is_lost(profiles: Mapping[str, Profile]) -> tuple[str, ...]:
    """
    List plugins from elsewhere that may keep books which no snapshot has.

    Those that take part in binding cycles, and those that follow pods or time.
    """
    return tuple(
        sorted(
            {
                plugin.name
                for profile in profiles.values()
                for plugin in profile.plugins.values()
                if not type(plugin).__module__.startswith(OWN)
                and (
                    isinstance(plugin, PodFollower | TimedPlugin)
                    or plugin in (*profile.reserve, *profile.permit, *profile.pre_bind, *profile.post_bind)
                )
            }
        )
    )


def unsigned_shapes(snapshot: LoopSnapshot, profile: str) -> set[int]:
    """Return the numbers of shapes in a snapshot that are not those of any pod's signature now."""
    pods = [*snapshot.queue.pods, *(underway.queued for underway in snapshot.underway)]
    mine = [pod for pod in pods if pod.profile == profile]
    numbers: set[object] = {pod.shape for pod in mine} | {pod.group for pod in mine}
    numbers |= {group.label for group in snapshot.queue.groups if group.profile == profile}
    signed = {pod.shape for pod in mine if pod.signed}
    return {number for number in numbers - signed if isinstance(number, int)}
