"""
A containerd as a source of holdings.

A look asks only for what may have changed since the last one, as events say; everything is asked for every five minutes.
Used by the node agent's reader. Nothing here writes, pulls or removes.
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
    """Looks at the containerd behind *socket*; *disk* is a folder on the file system that images are on."""

    def __init__(self, socket: Path, *, namespace: str = "k8s.io", disk: Path | None = None) -> None:
        if not NAMESPACE.fullmatch(namespace):
            raise RuntimeSourceError(NAME, f"{namespace!r:.80} is not a namespace; try k8s.io")
        self.place = socket
        self._calls = ContainerdClient(socket, namespace)
        self._disk = disk
        self._ledger = ContainerdEventLog()
        self._rhythm = PollSchedule()
        self._wake = asyncio.Event()
        self._listening = EventListener(self._calls, self._ledger, self._happened)
        self._looking = ContainerdInventory(self._calls, self._ledger)
        self._was_away = False

    @property
    def complaints(self) -> Counter[str]:
        """Images that are left out at the moment, by reason."""
        return self._looking.complaints

    @property
    def counts(self) -> Counter[str]:
        """How often each method of containerd was called."""
        return self._calls.counts

    async def look(self) -> Holdings:
        """Look at everything that may have changed; raises `RuntimeSourceError`."""
        now = time.monotonic()
        self._listening.start()
        whole = self._rhythm.whole_due(now)
        # Early versions do not say which snapshots went with an image.
        if self._rhythm.began(now) or whole:
            self._ledger.missed()
        complete = False
        try:
            holdings = await self._looking.look(whole=whole, room=self._room)
            complete = True
        except AbsentError as error:
            raise RuntimeSourceError(NAME, f"{error}: see whether this is the socket of a containerd") from error
        finally:
            if not complete:
                self._ledger.missed()
                self._rhythm.failed(time.monotonic())
                self._was_away = True
        if self._was_away:
            self._was_away = False
            self._listening.back()
        self._rhythm.ended(
            time.monotonic(),
            whole=whole,
            pulling=bool(holdings.pulling),
            unfinished=self._looking.unfinished,
            deaf=self._listening.deaf,
        )
        return holdings

    async def changed(self) -> None:
        """Return when looking again may be worth it."""
        while (wait := self._rhythm.due() - time.monotonic()) > 0:
            self._wake.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            except TimeoutError:
                return

    async def close(self) -> None:
        """Let go of containerd."""
        await self._listening.stop()
        await self._calls.close()

    def _room(self, root: str) -> tuple[int, int]:
        """Where images are: the folder that was named, or the one containerd names if it can be seen from here."""
        return disks.room(self._disk or (Path(root) if root.startswith("/") else None))

    def _happened(self, *, removal: bool) -> None:
        self._rhythm.happened(time.monotonic(), removal=removal)
        self._wake.set()
