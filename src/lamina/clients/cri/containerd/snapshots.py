"""
Unpacked layers by snapshotter, and their sizes.

A committed snapshot never changes, so its size is queried once. The first look may find thousands; each look queries
some and reports whether more are left.
"""

from collections.abc import Iterable
from contextlib import aclosing
from typing import Final

from lamina.clients.cri.containerd.containerd_client import AbsentError, ContainerdClient, RuntimeAnswerError
from lamina.clients.cri.containerd.event_log import RuntimeSnapshotChange
from lamina.clients.cri.protos import snapshots_pb2

USUAL: Final = "overlayfs"
LAZY: Final = ("stargz", "soci", "nydus", "overlaybd", "cvmfs", "gcfs")
"""Parts of the names of lazy snapshotters, which download content when it is read."""
COPYING: Final = "native"
"""This snapshotter copies all parents into every snapshot, so its sizes are not those of layers."""
MEASURED_AT_ONCE: Final = 200
"""Sizes that one look queries: one second at the rate limit of documents."""


def is_lazy(snapshotter: str) -> bool:
    """Return whether a snapshot may exist before its content is downloaded."""
    return any(word in snapshotter for word in LAZY)


def counts_layers(snapshotter: str) -> bool:
    """Return whether a snapshot's size is that of its layer."""
    return snapshotter != COPYING and not is_lazy(snapshotter)


class ContainerdSnapshots:
    """The committed snapshots of all snapshotters in use."""

    def __init__(self, client: ContainerdClient) -> None:
        self.sizes: dict[str, int] = {}
        """Unpacked bytes, by chain id."""
        self._client = client
        self._there: dict[str, set[str]] = {}
        self._unmeasured: set[str] = set()
        """Snapshots without a usable size, until the next full list."""

    async def ask(self, snapshotters: Iterable[str]) -> None:
        """List the snapshots of *snapshotters*; drop those of others."""
        there = {}
        for snapshotter in snapshotters:
            there[snapshotter] = await self._list(snapshotter)
        self._there = there
        self._unmeasured.clear()

    def apply(self, changes: Iterable[RuntimeSnapshotChange]) -> set[str]:
        """Apply changes from events; return snapshotters that have not been listed yet."""
        unknown = set()
        for change in changes:
            names = self._there.get(change.snapshotter)
            if names is None:
                unknown.add(change.snapshotter)
            elif change.there:
                names.add(change.name)
            else:
                names.discard(change.name)
                self.sizes.pop(change.name, None)
        return unknown

    def asked(self) -> set[str]:
        """Return the listed snapshotters."""
        return set(self._there)

    def holders(self, chain: str) -> list[str]:
        """Return the snapshotters that have this chain unpacked, lazy ones last."""
        return sorted(
            (name for name, chains in self._there.items() if chain in chains), key=lambda name: (is_lazy(name), name)
        )

    async def measure(self, chains: Iterable[str]) -> bool:
        """Query the sizes of *chains*; return whether more are left for the next look."""
        asked = 0
        for chain in chains:
            if chain in self.sizes or chain in self._unmeasured:
                continue
            holders = self.holders(chain)
            if not holders or not counts_layers(holders[0]):
                continue
            if asked >= MEASURED_AT_ONCE:
                return True
            asked += 1
            try:
                self.sizes[chain] = max(await self._client.usage(holders[0], chain), 0)
            except AbsentError:
                self._there[holders[0]].discard(chain)
            except RuntimeAnswerError:
                self._unmeasured.add(chain)
        return False

    def keep(self, chains: set[str]) -> None:
        """Drop the sizes of all other chains."""
        self.sizes = {chain: size for chain, size in self.sizes.items() if chain in chains}

    async def _list(self, snapshotter: str) -> set[str]:
        names = set()
        try:
            async with aclosing(self._client.unpacked(snapshotter)) as infos:
                async for info in infos:
                    if info.kind == snapshots_pb2.COMMITTED:
                        names.add(info.name)
        except AbsentError:
            return set()  # the snapshotter does not exist here
        return names
