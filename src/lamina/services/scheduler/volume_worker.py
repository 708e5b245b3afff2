"""
Work of VolumeBinding: writes the reservations of a pod, then waits until its claims are bound.

    DoWork ──> queued ──a worker writes──> awaited ──the caches show all claims bound──> WorkDone
                  └────────────────────────────┴──refused, undone, or too late──> WorkFailed

A fixed number of workers writes. One task checks all awaited pods once a second, in the caches that the loop reads, so
that waiting costs no requests. Work of a pod whose binding cycle ended is dropped without an answer.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol

import msgspec

from lamina.clients.kube import volume_writes
from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.kube.pod_writes import WriteClient
from lamina.clients.rate_limit import RateLimit
from lamina.model.events import Event, WorkDone, WorkFailed
from lamina.model.pod import PodUid
from lamina.model.volume_progress import VolumeWorkError, all_bound, may_reserve, may_select
from lamina.model.volumes import BindVolumes, ClaimRef, PersistentVolume, PersistentVolumeClaim, VolumeReservation
from lamina.scheduling.contract.commands import DoWork
from lamina.wire.errors import WireError

WORKERS: Final = 8
"""Pods whose reservations are written at the same time."""
BETWEEN_CHECKS: Final = 1.0
"""Seconds between two checks of awaited claims."""
PAUSES: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
ATTEMPTS: Final = 10
"""Attempts for one write."""
RETRIED: Final = frozenset({408, 409, 429})
"""Status codes below 500 that a retry can change; 409: the object has changed since it was read."""
NOT_LEADING: Final = "this instance does not lead any more"
TOO_LATE: Final = "binding volumes: context deadline exceeded"

log = logging.getLogger(__name__)


class StorageObjects(Protocol):
    """The claims and volumes that the watches have shown."""

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Return a claim."""

    def volume(self, name: str) -> PersistentVolume | None:
        """Return a volume."""


class Awaited(msgspec.Struct, frozen=True, eq=False):
    """Work whose writes are done."""

    command: DoWork
    task: BindVolumes
    deadline: float


class VolumeWorker:
    """Does the work of VolumeBinding for all pods."""

    def __init__(
        self,
        client: WriteClient,
        answer: Callable[[Event], None],
        objects: StorageObjects,
        *,
        wanted: Callable[[DoWork], bool],
        may_act: Callable[[], bool] = lambda: True,
        rate_limit: RateLimit | None = None,
    ) -> None:
        """
        Report outcomes with *answer*; call *may_act* right before every write.

        *wanted* returns whether the pod's binding cycle still waits for a command's work.
        """
        self._client = client
        self._answer = answer
        self._objects = objects
        self._wanted = wanted
        self._may_act = may_act
        self._rate_limit = rate_limit or RateLimit(0.0, 0)
        self._waiting: asyncio.Queue[tuple[DoWork, BindVolumes]] = asyncio.Queue()
        self._awaited: dict[PodUid, Awaited] = {}
        self._active = 0
        self._arrived = asyncio.Event()

    @property
    def in_flight(self) -> int:
        """The number of pods whose writes are queued or in flight."""
        return self._waiting.qsize() + self._active

    def perform(self, command: DoWork, task: BindVolumes) -> None:
        """Queue work."""
        self._waiting.put_nowait((command, task))

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(WORKERS):
                tasks.create_task(self._work(), name=f"volume worker {number}")
            tasks.create_task(self._check_all(), name="volume worker checks")

    async def _work(self) -> None:
        while True:
            command, task = await self._waiting.get()
            self._active += 1
            try:
                await self._write(command, task)
            except VolumeWorkError as error:
                self._fail(command, str(error))
            except Exception as error:
                # Work that fails must not end the worker; the pod is queued again.
                log.exception("binding volumes failed: %s", command.pod.key)
                self._fail(command, f"binding volumes: {type(error).__name__}: {error}")
            finally:
                self._active -= 1

    def _fail(self, command: DoWork, reason: str) -> None:
        self._answer(WorkFailed(command.pod.uid, command.plugin, command.attempt, reason))

    # -- writes ------------------------------------------------------------------------------------------------------

    async def _write(self, command: DoWork, task: BindVolumes) -> None:
        deadline = asyncio.get_running_loop().time() + task.timeout
        for reservation in task.reservations:
            await self._try(command, deadline, partial(self._reserve, reservation))
        for claim in task.provisions:
            await self._try(command, deadline, partial(self._select, claim, task.node))
        self._awaited[command.pod.uid] = Awaited(command, task, deadline)
        self._arrived.set()

    async def _try(self, command: DoWork, deadline: float, write: Callable[[], Awaitable[None]]) -> None:
        """Perform a write that reads first, again if the object changed in between or the API server is not well."""
        for attempt in itertools.count(1):
            try:
                await self._rate_limit.turn()
                await write()
                return
            except ApiError as error:
                if error.status < 500 and error.status not in RETRIED:
                    raise VolumeWorkError(f"binding volumes: {error}") from error
                problem = str(error)
            except (UnreachableError, WireError) as error:
                problem = str(error)
            late = asyncio.get_running_loop().time() > deadline
            if attempt >= ATTEMPTS or late or not self._wanted(command):
                raise VolumeWorkError(f"binding volumes: {problem}")
            log.debug("volume write failed, retrying: %s: %s", command.pod.key, problem)
            await asyncio.sleep(PAUSES[min(attempt, len(PAUSES)) - 1])

    async def _reserve(self, reservation: VolumeReservation) -> None:
        volume, version = await volume_writes.read_volume(self._client, reservation.volume)
        claim = reservation.claim
        if not may_reserve(volume, claim):
            return
        self._check_leading()
        await volume_writes.reserve_volume(self._client, volume, version, claim)

    async def _select(self, wanted: ClaimRef, node: str) -> None:
        claim, version = await volume_writes.read_claim(self._client, wanted.namespace, wanted.name)
        if not may_select(claim, wanted, node):
            return
        self._check_leading()
        await volume_writes.select_node(self._client, wanted, version, node)

    def _check_leading(self) -> None:
        if not self._may_act():
            raise VolumeWorkError(NOT_LEADING)

    # -- waiting -----------------------------------------------------------------------------------------------------

    async def _check_all(self) -> None:
        """Check the awaited pods once a second."""
        while True:
            while not self._awaited:
                self._arrived.clear()
                await self._arrived.wait()
            await asyncio.sleep(BETWEEN_CHECKS)
            now = asyncio.get_running_loop().time()
            for uid, awaited in list(self._awaited.items()):
                if self._conclude(awaited, now):
                    del self._awaited[uid]

    def _conclude(self, awaited: Awaited, now: float) -> bool:
        """Report an outcome if there is one; return whether the wait is over."""
        command = awaited.command
        if not self._wanted(command):
            return True
        try:
            if all_bound(awaited.task, self._objects.volume, self._objects.claim):
                self._answer(WorkDone(command.pod.uid, command.plugin, command.attempt))
                return True
        except VolumeWorkError as error:
            self._fail(command, str(error))
            return True
        if now >= awaited.deadline:
            self._fail(command, TOO_LATE)
            return True
        return False
