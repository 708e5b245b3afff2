"""
Which layers are unpacked, by which snapshotter, and how many bytes that is.

A complete snapshot never changes, so its size is asked for once. There may be thousands at the first look; each look asks
for some and says whether more are left.
"""

from collections.abc import Iterable
from contextlib import aclosing
from typing import Final

from lamina.clients.cri.containerd.containerd_client import AbsentError, ContainerdClient, RuntimeAnswerError
from lamina.clients.cri.containerd.event_log import RuntimeSnapshotChange
from lamina.clients.cri.protos import snapshots_pb2

USUAL: Final = "overlayfs"
LAZY: Final = ("stargz", "soci", "nydus", "overlaybd", "cvmfs", "gcfs")
"""Words in the names of snapshotters that fetch content when it is read."""
COPYING: Final = "native"
"""Copies everything below into every snapshot, and counts it there."""
MEASURED_AT_ONCE: Final = 200
"""Sizes one look asks for: a second at the pace of documents."""


def is_lazy(snapshotter: str) -> bool:
    """Whether a snapshot may be there before its bytes are."""
    return any(word in snapshotter for word in LAZY)


def counts_layers(snapshotter: str) -> bool:
    """Whether the size of a snapshot is that of its layer."""
    return snapshotter != COPYING and not is_lazy(snapshotter)


class ContainerdSnapshots:
    """The complete snapshots of every snapshotter that is in use."""

    def __init__(self, calls: ContainerdClient) -> None:
        self.sizes: dict[str, int] = {}
        """Unpacked bytes, by chain id."""
        self._calls = calls
        self._there: dict[str, set[str]] = {}
        self._unmeasured: set[str] = set()
        """What has no size to be told, until everything is asked for again."""

    async def ask(self, snapshotters: Iterable[str]) -> None:
        """List what every one of *snapshotters* has; what others had is forgotten."""
        there = {}
        for snapshotter in snapshotters:
            there[snapshotter] = await self._list(snapshotter)
        self._there = there
        self._unmeasured.clear()

    def apply(self, changes: Iterable[RuntimeSnapshotChange]) -> set[str]:
        """Take over what events said; the answer names snapshotters nobody has asked about yet."""
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
        """Snapshotters whose snapshots are known."""
        return set(self._there)

    def holders(self, chain: str) -> list[str]:
        """Snapshotters that have this stack of layers unpacked, those that have all of its bytes first."""
        return sorted(
            (name for name, chains in self._there.items() if chain in chains), key=lambda name: (is_lazy(name), name)
        )

    async def measure(self, chains: Iterable[str]) -> bool:
        """Ask for the sizes of *chains*; whether more are left for the next look."""
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
                self.sizes[chain] = max(await self._calls.usage(holders[0], chain), 0)
            except AbsentError:
                self._there[holders[0]].discard(chain)
            except RuntimeAnswerError:
                self._unmeasured.add(chain)
        return False

    def keep(self, chains: set[str]) -> None:
        """Forget the sizes of everything else."""
        self.sizes = {chain: size for chain, size in self.sizes.items() if chain in chains}

    async def _list(self, snapshotter: str) -> set[str]:
        names = set()
        try:
            async with aclosing(self._calls.unpacked(snapshotter)) as infos:
                async for info in infos:
                    if info.kind == snapshots_pb2.COMMITTED:
                        names.add(info.name)
        except AbsentError:
            return set()  # no such snapshotter here
        return names
