"""
Snapshot of a loop: taken from one loop, restored into a new loop with the same profiles.

    loop ──snapshot──> LoopSnapshot ──pieces──> bytes ──assemble──> LoopSnapshot ──restore──> new loop

The new loop returns the same commands for the same events. A snapshot is shallow: it shares pods, nodes, reports and
images with the loop, so that taking one costs a pass over the objects but copies none of them. It does not include
cached evaluations (they equal fresh ones), the private state of plugins (`what_is_lost`), or pending commands.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, get_origin

import msgspec

from lamina.model.errors import LaminaError
from lamina.scheduling.contract.kept_state import SavedPlugin
from lamina.scheduling.contract.points import PodFollower, TimedPlugin
from lamina.scheduling.loop.binding_cycle import BindingCycleSnapshot
from lamina.scheduling.loop.extender_waits import ExtenderWaitSnapshot
from lamina.scheduling.loop.kept_nodes import KeptNode
from lamina.scheduling.loop.queue_snapshot import QueuedPodSnapshot, QueueSnapshot
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.cluster_state import ClusterSnapshot

OWN: Final = "lamina."
"""Package prefix of in-tree plugins: what they keep for a binding cycle can be computed again."""
PIECE: Final = 1000
"""Number of list items that are encoded at a time."""


class SnapshotError(LaminaError):
    """A snapshot is inconsistent or does not fit the loop."""


class LoopSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Complete content of a loop, apart from caches and plugin state."""

    wake: float | None
    """The time of the last WakeAt in seconds, if it is still to come."""
    changes: int
    cluster: ClusterSnapshot
    queue: QueueSnapshot
    underway: tuple[BindingCycleSnapshot, ...]
    waits: tuple[ExtenderWaitSnapshot, ...] = ()
    """Pods that wait for extenders; recordings of versions without extenders have none."""
    asked: int = 0
    """The number of the last of these waits."""
    kept: tuple[KeptNode, ...] = ()
    """Nodes that place plugins keep for waiting pods."""
    evictions_off_until: float = 0.0
    """See `LoopState.evictions_off_until`."""
    plugins: tuple[tuple[str, bytes], ...] = ()
    """State of plugins (`SavedPlugin`), by name."""


FIELDS: Final = {
    **{field.name: field.type for field in msgspec.structs.fields(LoopSnapshot) if field.name != "cluster"},
    **{f"cluster.{field.name}": field.type for field in msgspec.structs.fields(ClusterSnapshot)},
}
"""Parts of a snapshot and their types."""
REQUIRED: Final = FIELDS.keys() - {"asked"}
LISTS: Final = frozenset(name for name, kind in FIELDS.items() if get_origin(kind) is tuple)


def pieces(snapshot: LoopSnapshot) -> Iterator[tuple[str, bytes]]:
    """Yield the parts of a snapshot as MessagePack; long lists in pieces, so that other threads can run in between."""
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
    """Build a snapshot from its pieces. Raise `SnapshotError` if they are invalid or incomplete."""
    # Any: each part has its own type.
    lists: dict[str, list[Any]] = {name: [] for name in LISTS}
    values: dict[str, Any] = {}
    for name, data in found:
        if name not in FIELDS or name in values:
            raise SnapshotError(f"the snapshot has an unknown or duplicate part {name!r:.40}")
        try:
            value = msgspec.msgpack.decode(data, type=FIELDS[name])
        except (ValueError, RecursionError) as error:
            raise SnapshotError(f"the snapshot cannot be read ({name}: {error})") from error
        if name in LISTS:
            lists[name].extend(value)
        else:
            values[name] = value
    values |= {name: tuple(items) for name, items in lists.items()}
    missing = sorted(REQUIRED - values.keys())
    if missing:
        raise SnapshotError(f"the snapshot has no {', '.join(missing)}")
    cluster = {name.partition(".")[2]: values.pop(name) for name in FIELDS if "." in name}
    return LoopSnapshot(cluster=ClusterSnapshot(**cluster), **values)


def check_rows(snapshot: LoopSnapshot) -> None:
    """Check that no row exceeds the number of nodes: array sizes follow the highest row."""
    cluster, inventory = snapshot.cluster, snapshot.cluster.inventory
    rows = chain(
        cluster.columns.spare,
        (use.row for use in cluster.usage.nodes if use.row != -1),
        (row for row, _, _ in cluster.usage.trust.ends),
        (row for row, _, _ in inventory.trust.ends),
        (node.row for node in inventory.nodes),
        (held.row for held in inventory.held),
        (rate[0] for rate in inventory.rates),
        (one.row for one in inventory.arrivals.arrivals),
        inventory.arrivals.busy,
        *(rows for _, rows in inventory.platforms.rows),
    )
    height = len(cluster.columns.nodes)
    beyond = next((row for row in rows if not 0 <= row < height), None)
    if beyond is not None:
        raise SnapshotError(f"the snapshot refers to row {beyond}, but has only {height} rows")


def what_is_lost(profiles: Mapping[str, Profile]) -> tuple[str, ...]:
    """
    List plugins whose private state a snapshot may lack.

    These are plugins that implement `PodFollower` or `TimedPlugin`, and out-of-tree ones that take part in binding
    cycles, unless they are part of the snapshot (`SavedPlugin`).
    """
    return tuple(
        sorted(
            {
                plugin.name
                for profile in profiles.values()
                for plugin in profile.plugins.values()
                if not isinstance(plugin, SavedPlugin)
                and (
                    isinstance(plugin, PodFollower | TimedPlugin)
                    or (
                        not type(plugin).__module__.startswith(OWN)
                        and plugin in (*profile.reserve, *profile.permit, *profile.pre_bind, *profile.post_bind)
                    )
                )
            }
        )
    )


def queued_in(snapshot: LoopSnapshot) -> list[QueuedPodSnapshot]:
    """Return all pods that are not bound: in queues, in binding cycles, and those that wait for extenders."""
    underway = [cycle.queued for cycle in snapshot.underway]
    return [*snapshot.queue.pods, *underway, *(wait.queued for wait in snapshot.waits)]


def unsigned_shapes(snapshot: LoopSnapshot, profile: str) -> set[int]:
    """Return the shape numbers in a snapshot that no pod's current signature has."""
    own = [pod for pod in queued_in(snapshot) if pod.profile == profile]
    numbers: set[object] = {pod.shape for pod in own} | {pod.group for pod in own}
    numbers |= {group.label for group in snapshot.queue.groups if group.profile == profile}
    signed = {pod.shape for pod in own if pod.signed}
    return {number for number in numbers - signed if isinstance(number, int)}
