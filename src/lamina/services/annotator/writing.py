"""
A few writes a second, each of annotations of one node and of nothing else.

Every write names the node's uid, so that a node of the same name that came later is not touched. A node that is gone is no
failure. Anything else ends the round: whoever comes after would fare no better.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

import msgspec

from lamina.clients.kube.errors import ApiError
from lamina.clients.kube.writes import Client
from lamina.services.annotator.planning import Change

MERGE: Final = "application/merge-patch+json"
JITTER: Final = 0.5
"""By how much of itself the pause between two writes may be longer, so that several annotators do not keep step."""


class Writer:
    """Writes annotations, never faster than told."""

    def __init__(self, client: Client, per_second: float, rng: random.Random) -> None:
        """Write through *client*, at most *per_second* times a second."""
        self._client = client
        self._pause = 1 / per_second
        self._rng = rng
        self._next = 0.0
        self.counts: Counter[str] = Counter()
        """Writes, by why; and what became of others."""

    async def write(self, changes: Iterable[Change]) -> int:
        """Write one after the other; return how many were. Raises ApiError or Unreachable."""
        written = 0
        for change in changes:
            await self._turn()
            if await self._patch(change):
                self.counts[change.why] += 1
                written += 1
            else:
                self.counts["gone"] += 1
        return written

    async def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        wait = self._next - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        self._next = loop.time() + self._pause * (1 + JITTER * self._rng.random())

    async def _patch(self, change: Change) -> bool:
        metadata = {"uid": change.uid, "annotations": change.annotations}
        if not change.uid:
            del metadata["uid"]
        path = f"/api/v1/nodes/{quote(change.node, safe='')}"
        body = msgspec.json.encode({"metadata": metadata})
        try:
            await self._client.request("PATCH", path, body=body, content_type=MERGE)
        except ApiError as error:
            if error.status == 404 or (error.status in (409, 422) and "uid" in error.message.lower()):
                return False
            raise
        return True
