"""
Node fact: which claims and disks the pods on each row use.

Few nodes are full of volumes and few pods share one, so it is indexed both by row and by volume. Pods without claims
and disks cost nothing. VolumeRestrictions and NodeVolumeLimits share it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import numpy as np

from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.model.pod_volumes import CLAIM, CLAIMS, PodVolume
from lamina.rows.growable import grown
from lamina.scheduling.state.columns import Ints
from lamina.scheduling.state.node_facts import Placements


class ClaimUse(msgspec.Struct, frozen=True, gc=False):
    """A claim that a pod uses."""

    namespace: str
    name: str
    owner: str = ""
    """For an ephemeral claim, the UID of its pod."""


Use = ClaimUse | PodVolume
"""A claim or a disk."""
NOTHING: Final[Mapping[Use, int]] = {}


def uses(pod: Pod) -> tuple[Use, ...]:
    """Return the claims and disks of a pod, each once."""
    found: dict[Use, None] = {}
    for volume in pod.volumes:
        if volume.kind in CLAIMS:
            found[ClaimUse(pod.namespace, volume.claim(pod.name), "" if volume.kind == CLAIM else pod.uid)] = None
        else:
            found[volume] = None
    return tuple(found)


class VolumesInUse:
    """Claims and disks by row, and rows by claim and disk."""

    __slots__ = ("_by_row", "_disks", "_load", "_names", "_rows", "nodes_edition")

    def __init__(self) -> None:
        """Start without pods."""
        self._by_row: dict[int, dict[Use, int]] = {}
        """Row → use → number of pods."""
        self._rows: dict[Use, set[int]] = {}
        self._disks: dict[tuple[str, str], set[PodVolume]] = {}
        """Disks in use, by kind and identity."""
        self._load: Ints = np.zeros(0, dtype=np.int64)
        self._names: dict[int, str] = {}
        self.nodes_edition = 0
        """Increases whenever a row gets another node."""

    @property
    def name(self) -> str:
        """Identifies the fact."""
        return "volumes-in-use"

    def counts(self, pod: Pod) -> tuple[PodVolume, ...]:
        """Return the claims and disks of a pod."""
        return pod.volumes

    def put(self, row: int, node: Node | None) -> bool:
        """Note which node a row has; nodes use no volumes, so the row's fact is unchanged."""
        name = "" if node is None else node.name
        if self._names.get(row, "") != name:
            self.nodes_edition += 1
            self._names[row] = name
            if node is None:
                del self._names[row]
        return False

    def add(self, row: int, pod: Pod) -> bool:
        """Count a pod's volumes on a row."""
        here = self._by_row.setdefault(row, {})
        for use in uses(pod):
            here[use] = here.get(use, 0) + 1
            if here[use] == 1:
                self._rows.setdefault(use, set()).add(row)
                if isinstance(use, PodVolume):
                    self._disks.setdefault((use.kind, use.source), set()).add(use)
        self._load = grown(self._load, row + 1)
        self._load[row] = len(here)
        return True

    def remove(self, row: int, pod: Pod) -> bool:
        """Stop counting a pod's volumes on a row."""
        here = self._by_row[row]
        for use in uses(pod):
            here[use] -= 1
            if not here[use]:
                del here[use]
                self._leave(row, use)
        self._load[row] = len(here)
        if not here:
            del self._by_row[row]
        return True

    def _leave(self, row: int, use: Use) -> None:
        rows = self._rows[use]
        rows.discard(row)
        if rows:
            return
        del self._rows[use]
        if isinstance(use, PodVolume):
            same = self._disks[use.kind, use.source]
            same.discard(use)
            if not same:
                del self._disks[use.kind, use.source]

    def as_if(self, gone: Placements, there: Placements) -> "VolumesInUse":
        """Return the volumes in use without the pods *gone* and with the pods *there*."""
        return SupposedVolumes(self, gone, there)

    def on(self, row: int) -> Mapping[Use, int]:
        """Return the claims and disks that pods on a row use, with the number of those pods; read-only."""
        return self._by_row.get(row, NOTHING)

    def rows(self, use: Use) -> Iterable[int]:
        """Return the rows where a claim or disk is in use."""
        return self._rows.get(use, ())

    def same_disks(self, disk: PodVolume) -> Iterable[PodVolume]:
        """Return the disks in use with the identity of *disk*."""
        return self._disks.get((disk.kind, disk.source), ())

    def conflicts(self, disk: PodVolume) -> list[int]:
        """List the rows where a pod uses the disk in a way that excludes another pod with *disk*, with repeats."""
        return [row for other in self.same_disks(disk) if disk.conflicts(other) for row in self.rows(other)]

    def most(self, height: int) -> Ints:
        """Return for each row the most volumes that its pods can have attached; read-only."""
        self._load = grown(self._load, height)
        return self._load[:height]


class SupposedVolumes(VolumesInUse):
    """Volumes in use under a hypothesis."""

    __slots__ = ("_changed", "_real")

    def __init__(self, real: VolumesInUse, gone: Placements, there: Placements) -> None:
        """Read *real*, without the volumes of the pods *gone* and with those of the pods *there*."""
        super().__init__()
        self._real = real
        self._changed: dict[int, dict[Use, int]] = {}
        """For rows with such pods: use → number of pods."""
        for placements, more in ((gone, -1), (there, 1)):
            for row, pod in placements:
                here = self._changed.setdefault(row, dict(real.on(row)))
                for use in uses(pod):
                    here[use] = here.get(use, 0) + more
                    if not here[use]:
                        del here[use]

    def on(self, row: int) -> Mapping[Use, int]:
        """Return the claims and disks that pods on a row would use."""
        return self._changed[row] if row in self._changed else self._real.on(row)

    def rows(self, use: Use) -> Iterable[int]:
        """Return the rows where a claim or disk would be in use."""
        return [
            *(row for row in self._real.rows(use) if row not in self._changed),
            *(row for row, here in self._changed.items() if use in here),
        ]

    def same_disks(self, disk: PodVolume) -> Iterable[PodVolume]:
        """Return the disks that would be in use with the identity of *disk*."""
        added = {use for here in self._changed.values() for use in here if isinstance(use, PodVolume)}
        same = {use for use in added if (use.kind, use.source) == (disk.kind, disk.source)}
        return same.union(self._real.same_disks(disk))

    def most(self, height: int) -> Ints:
        """Return for each row the most volumes that its pods would have attached."""
        load = self._real.most(height).copy()
        for row, here in self._changed.items():
            load[row] = len(here)
        return load
