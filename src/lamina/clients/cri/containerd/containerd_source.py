"""
Runtime source for containerd.

A look queries only what may have changed according to events; every five minutes it queries everything. The node agent
uses it. It never writes, pulls or removes.
"""

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Final

from lamina.clients.cri import disk as disks
from lamina.clients.cri.containerd import content_store
from lamina.clients.cri.containerd.containerd_client import NAME, AbsentError, ContainerdClient
from lamina.clients.cri.containerd.containerd_inventory import ContainerdInventory
from lamina.clients.cri.containerd.event_log import ContainerdEventLog
from lamina.clients.cri.containerd.event_stream import EventListener
from lamina.clients.cri.containerd.poll_schedule import PollSchedule
from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.model.holdings import Holdings

NAMESPACE: Final = content_store.PLAIN_NAME


class ContainerdSource:
    """The containerd behind *socket*; *disk* is a folder on the file system that holds its images."""

    def __init__(self, socket: Path, *, namespace: str = "k8s.io", disk: Path | None = None) -> None:
        if not NAMESPACE.fullmatch(namespace):
            raise RuntimeSourceError(NAME, f"{namespace!r:.80} is not a namespace; try k8s.io")
        self.place = socket
        self._client = ContainerdClient(socket, namespace)
        self._disk = disk
        self._event_log = ContainerdEventLog()
        self._schedule = PollSchedule()
        self._wake = asyncio.Event()
        self._listener = EventListener(self._client, self._event_log, self._happened)
        self._inventory = ContainerdInventory(self._client, self._event_log)
        self._was_away = False

    @property
    def complaints(self) -> Counter[str]:
        """Images skipped by the last look, by reason."""
        return self._inventory.complaints

    @property
    def counts(self) -> Counter[str]:
        """Number of calls of each containerd method."""
        return self._client.counts

    async def look(self) -> Holdings:
        """Query what may have changed and return the holdings. Raises `RuntimeSourceError`."""
        now = time.monotonic()
        self._listener.start()
        whole = self._schedule.whole_due(now)
        # Old versions send no snapshot events when an image is removed.
        if self._schedule.began(now) or whole:
            self._event_log.missed()
        complete = False
        try:
            holdings = await self._inventory.look(whole=whole, room=self._room)
            complete = True
        except AbsentError as error:
            raise RuntimeSourceError(NAME, f"{error}; check that this is the socket of a containerd") from error
        finally:
            if not complete:
                self._event_log.missed()
                self._schedule.failed(time.monotonic())
                self._was_away = True
        if self._was_away:
            self._was_away = False
            self._listener.back()
        self._schedule.ended(
            time.monotonic(),
            whole=whole,
            pulling=bool(holdings.pulling),
            unfinished=self._inventory.unfinished,
            deaf=self._listener.deaf,
        )
        return holdings

    async def changed(self) -> None:
        """Wait until another look is due."""
        while (wait := self._schedule.due() - time.monotonic()) > 0:
            self._wake.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            except TimeoutError:
                return

    async def close(self) -> None:
        """Close the event stream and the connection."""
        await self._listener.stop()
        await self._client.close()

    def _room(self, root: str) -> tuple[int, int]:
        """Return size and free bytes of the configured folder, or of the snapshotter's root if it is visible here."""
        return disks.room(self._disk or (Path(root) if root.startswith("/") else None))

    def _happened(self, *, removal: bool) -> None:
        self._schedule.happened(time.monotonic(), removal=removal)
        self._wake.set()
