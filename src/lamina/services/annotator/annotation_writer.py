"""
Rate-limited writer of node annotations.

Every write has the node's uid, so a recreated node of the same name is not changed. A deleted node is not a failure. A
rejected write (annotations too long, or denied by a webhook) concerns that node only. A failure that would repeat for
every node ends the round: the API server is unreachable, rejects the credentials, limits the rate, or rejects many
nodes in a row for the same reason.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Final
from urllib.parse import quote

import msgspec

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.kube.pod_writes import WriteClient
from lamina.model.errors import LaminaError
from lamina.services.annotator.annotation_plan import AnnotationWrite

MERGE: Final = "application/merge-patch+json"
JITTER: Final = 0.5
"""Jitter added to the pause between two writes, as a share of it, so that several annotators do not write together."""
ALIKE: Final = 20
"""Consecutive rejections for the same reason after which the round ends."""
ANOTHER_NODE: Final = ("metadata.uid: ", "UID in precondition")
"""Texts with which the API server reports a uid conflict."""

FOR_ALL: Final = (401, 429)
"""Status codes that would repeat for the next node: unauthorized, or rate limited."""

# Outcomes other than a successful write.
GONE: Final = "gone"
REFUSED: Final = "refused"


class WritesRejectedError(LaminaError):
    """Raised when the API server rejected the writes of nodes."""

    exit_code: ClassVar[int] = 1


class WriteOutcome(msgspec.Struct):
    """Outcome counts of one round of writes."""

    written: list[str] = msgspec.field(default_factory=list)
    """Nodes that were written."""
    refused: dict[str, ApiError] = msgspec.field(default_factory=dict)
    """The API server's error, by node."""
    ended: LaminaError | None = None
    """Why the remaining writes were not tried."""
    stuck: str = ""
    """The node at which the round ended: the cause may be a webhook for that node only."""

    @property
    def retry_after(self) -> float:
        """Seconds that the API server asked to wait."""
        return (self.ended.retry_after or 0.0) if isinstance(self.ended, ApiError) else 0.0


class AnnotationWriter:
    """Writes annotations within a rate limit."""

    def __init__(self, client: WriteClient, per_second: float, rng: random.Random) -> None:
        """Write through *client*, at most *per_second* times a second."""
        self._client = client
        self._pause = 1 / per_second
        self._rng = rng
        self._next = 0.0
        self.counts: Counter[str] = Counter()
        """Successful writes by reason, and other outcomes."""

    async def write(self, changes: Iterable[AnnotationWrite]) -> WriteOutcome:
        """Write one node after the other, until a failure that would repeat for all."""
        outcome = WriteOutcome()
        last, in_a_row = "", 0
        for change in changes:
            await self._turn()
            try:
                await self._patch(change)
            except (ApiError, UnreachableError) as error:
                if isinstance(error, UnreachableError) or error.status in FOR_ALL or error.status >= 500:
                    outcome.ended, outcome.stuck = error, change.node
                    break
                if _gone(error):
                    self.counts[GONE] += 1
                    continue
                self.counts[REFUSED] += 1
                outcome.refused[change.node] = error
                said = f"{error.status} {error.reason}".rstrip()
                last, in_a_row = said, in_a_row + 1 if said == last else 1
                if in_a_row == ALIKE:
                    outcome.ended = WritesRejectedError(f"{ALIKE} annotation writes in a row rejected: {said}")
                    break
            else:
                self.counts[change.why] += 1
                outcome.written.append(change.node)
                in_a_row = 0
        return outcome

    async def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        wait = self._next - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        self._next = loop.time() + self._pause * (1 + JITTER * self._rng.random())

    async def _patch(self, change: AnnotationWrite) -> None:
        metadata = {"uid": change.uid, "annotations": change.annotations}
        if not change.uid:
            del metadata["uid"]
        path = f"/api/v1/nodes/{quote(change.node, safe='')}"
        body = msgspec.json.encode({"metadata": metadata})
        await self._client.request("PATCH", path, body=body, content_type=MERGE)


def _gone(error: ApiError) -> bool:
    """Return whether the node of a write does not exist any more."""
    another = error.status in (409, 422) and any(words in error.message for words in ANOTHER_NODE)
    return error.status == 404 or another
