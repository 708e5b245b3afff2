"""
Writes of a preemption: the nomination of a node, and the evictions of the victims there.

    Nominate ──PATCH──> written ──> Evict: PATCH the condition, DELETE ──> event Preempted
                                      | 429, 5xx, no answer: again, at most `TRIES` times
                                      | gone already: done
                                      +──anything else──> EvictFailed

Writes about one preemptor start in the order of the commands, so no pod is evicted before the nomination was tried, and
an older nomination never replaces a newer one.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import msgspec

from lamina.clients.kube import pod_writes
from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.kube.transport import KubeClient
from lamina.model.errors import LaminaError
from lamina.model.events import Event, EvictFailed
from lamina.model.pod import PodUid
from lamina.scheduling.contract.commands import Evict, Nominate
from lamina.services.informers.clock import SteadyClock
from lamina.services.scheduler.pod_status import PodStatusSink, key_of

PAUSES: Final = (0.2, 0.5, 1.0, 2.0)
"""Seconds between the attempts of one eviction."""
TRIES: Final = len(PAUSES) + 1
LONGEST_PAUSE: Final = 10.0
"""Longest Retry-After that is honoured, in seconds."""
FORBIDDEN: Final = 403
PASSING: Final = frozenset({408, 409, 429})
"""4xx status codes that a retry may change; another UID is not among them (`pod_writes`)."""
NOT_LEADING: Final = "this instance does not lead any more"
NO_PERMISSION: Final = (
    "evictions are forbidden, pausing preemption; apply deploy/rbac/optional/scheduler-preemption.yaml, or disable "
    "DefaultPreemption: %s"
)

log = logging.getLogger(__name__)


class PreemptionWrite(msgspec.Struct, eq=False):
    """A command, and the writes that it waits for."""

    command: Evict | Nominate
    after: asyncio.Event | None
    """Set once the earlier nomination of the same preemptor was tried."""
    done: asyncio.Event | None
    """Set once this nomination was tried."""


class PreemptionWriter:
    """Performs `Nominate` and `Evict`."""

    def __init__(
        self,
        client: KubeClient,
        answer: Callable[[Event], None],
        status: PodStatusSink,
        *,
        may_act: Callable[[], bool],
        clock: SteadyClock,
    ) -> None:
        """Report failed evictions with *answer*, and successful ones to *status*; call *may_act* before every write."""
        self._client = client
        self._answer = answer
        self._status = status
        self._may_act = may_act
        self._clock = clock
        self._nominating: dict[PodUid, asyncio.Event] = {}
        self._forbidden = False

    def ordered(self, command: Evict | Nominate) -> PreemptionWrite:
        """Return the write of a command; to be called in the order of the commands."""
        uid = _preemptor(command)
        after, done = self._nominating.get(uid), None
        if isinstance(command, Nominate):
            done = self._nominating[uid] = asyncio.Event()
        return PreemptionWrite(command, after, done)

    async def perform(self, write: PreemptionWrite) -> None:
        """Perform a write, after the earlier nomination of the same preemptor."""
        try:
            if write.after is not None:
                await write.after.wait()
            if isinstance(write.command, Evict):
                await self._evict(write.command)
            else:
                await self._nominate(write.command)
        except Exception as error:
            if isinstance(write.command, Evict):
                self._failed(write.command, f"{type(error).__name__}: {error}")
            raise
        finally:
            if write.done is not None:
                write.done.set()
                uid = _preemptor(write.command)
                if self._nominating.get(uid) is write.done:
                    del self._nominating[uid]

    async def _nominate(self, command: Nominate) -> None:
        patch = pod_writes.status_patch(key_of(command.pod), self._clock.now(), node=command.node)
        if patch is None or not self._may_act():
            return
        try:
            await pod_writes.patch_pod_status(self._client, key_of(command.pod), patch)
        except LaminaError as error:
            # The loop reserves the room in any case; only other schedulers do not see it.
            log.warning("nominate failed: %s: %s", command.pod.key, error)

    async def _evict(self, command: Evict) -> None:
        victim, problem = command.pod, ""
        for attempt in range(TRIES):
            if not self._may_act():
                self._failed(command, NOT_LEADING)
                return
            pause = PAUSES[min(attempt, len(PAUSES) - 1)]
            try:
                deleted = await pod_writes.preempt_pod(
                    self._client,
                    key_of(victim),
                    command.preemptor.scheduler_name,
                    self._clock.now(),
                    may_act=self._may_act,
                )
            except ApiError as error:
                problem = str(error)
                if error.status == FORBIDDEN:
                    self._reject(command, problem)
                    return
                if error.status < 500 and error.status not in PASSING:
                    break
                pause = max(pause, min(error.retry_after or 0.0, LONGEST_PAUSE))
            except UnreachableError as error:
                problem = str(error)
            else:
                self._succeed(command, deleted=deleted)
                return
            if attempt < TRIES - 1:
                log.debug("evict failed, retrying: %s: %s", victim.key, problem)
                await asyncio.sleep(pause)
        log.warning("evict failed: %s: %s", victim.key, problem)
        self._failed(command, problem)

    def _succeed(self, command: Evict, *, deleted: bool) -> None:
        if deleted:
            self._forbidden = False
            self._status.preempted(command.pod, command.preemptor, command.node)
        elif not self._may_act():
            # Leadership ended between the two writes.
            self._failed(command, NOT_LEADING)

    def _reject(self, command: Evict, problem: str) -> None:
        if not self._forbidden:
            self._forbidden = True
            log.warning("evict failed: %s: %s", command.pod.key, NO_PERMISSION % problem)
        self._failed(command, problem, forbidden=True)

    def _failed(self, command: Evict, reason: str, *, forbidden: bool = False) -> None:
        self._answer(EvictFailed(command.pod.uid, command.preemptor.uid, reason, forbidden))


def _preemptor(command: Evict | Nominate) -> PodUid:
    return command.preemptor.uid if isinstance(command, Evict) else command.pod.uid
