"""
A few writes a second, each of annotations of one node and of nothing else.

Every write names the node's uid, so that a node of the same name that came later is not touched. A node that is gone is no
failure, and one that refuses its write (its annotations are too long, or a webhook does not let us) stands for itself. What
would befall everybody who comes after ends the round: nobody answers, we are not known or too fast, or everybody refuses alike.
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
"""By how much of itself the pause between two writes may be longer, so that several annotators do not keep step."""
ALIKE: Final = 20
"""As many nodes that refuse in a row, for the same reason, are taken for all."""
ANOTHER_NODE: Final = ("metadata.uid: ", "UID in precondition")
"""How a server says that a node is not the one that was meant."""

FOR_ALL: Final = (401, 429)
"""Not known, or too fast: the next node would hear the same."""

# What became of writes that were none.
GONE: Final = "gone"
REFUSED: Final = "refused"


class WritesRejectedError(LaminaError):
    """Nodes were not written because the server refused each of them."""

    exit_code: ClassVar[int] = 1


class WriteOutcome(msgspec.Struct):
    """What became of some writes."""

    written: list[str] = msgspec.field(default_factory=list)
    """Nodes."""
    refused: dict[str, ApiError] = msgspec.field(default_factory=dict)
    """What the server said, by node."""
    ended: LaminaError | None = None
    """Why the rest was not tried."""
    stuck: str = ""
    """The node at which it ended: what looks like everybody's trouble may be that of one node's webhook."""

    @property
    def retry_after(self) -> float:
        """Seconds for which the server wants to be left alone."""
        return (self.ended.retry_after or 0.0) if isinstance(self.ended, ApiError) else 0.0


class AnnotationWriter:
    """Writes annotations, never faster than told."""

    def __init__(self, client: WriteClient, per_second: float, rng: random.Random) -> None:
        """Write through *client*, at most *per_second* times a second."""
        self._client = client
        self._pause = 1 / per_second
        self._rng = rng
        self._next = 0.0
        self.counts: Counter[str] = Counter()
        """Writes, by why; and what became of others."""

    async def write(self, changes: Iterable[AnnotationWrite]) -> WriteOutcome:
        """Write one after the other, until something ends it for all."""
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
                    outcome.ended = WritesRejectedError(f"{ALIKE} nodes in a row refuse their annotations: {said}")
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
    """Say whether the node that was meant is no longer there."""
    another = error.status in (409, 422) and any(words in error.message for words in ANOTHER_NODE)
    return error.status == 404 or another
