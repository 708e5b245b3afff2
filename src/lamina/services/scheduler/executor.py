"""
Executor of the loop's commands against the API server.

A fixed number of workers sends bindings, so an outage causes a queue and not a burst of requests. If the response to a
binding is lost, the executor looks the pod up before it reports an outcome; the resources stay reserved until then. If
that fails for a while, the worker is freed, one task continues the look-ups, and the loop keeps the assumed pod. An
unknown outcome is never reported as "not bound". Conditions and events have workers of their own and never delay a
binding.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from lamina.clients.kube import pod_writes
from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.kube.transport import KubeClient
from lamina.clients.rate_limit import RateLimit
from lamina.model.events import BindDone, BindFailed, Event, WorkFailed
from lamina.model.pod import Pod, PodUid
from lamina.model.volumes import BindVolumes
from lamina.scheduling.contract.commands import (
    AskExtenders,
    Bind,
    Command,
    DoWork,
    Evict,
    Nominate,
    ReportPluginError,
    ReportUnschedulable,
    WakeAt,
)
from lamina.services.informers.clock import SteadyClock
from lamina.services.scheduler.pod_status import PodStatusSink, key_of
from lamina.services.scheduler.preemption_writer import PreemptionWrite, PreemptionWriter
from lamina.services.scheduler.volume_worker import VolumeWorker
from lamina.wire.decision_note import DECISION_ANNOTATION, encode_note
from lamina.wire.errors import WireError
from lamina.wire.kube.codec import encode_binding
from lamina.wire.kube.pod_location import decode_pod_location

WORKERS: Final = 16
"""Bindings in flight at the same time."""
MOST_WAITING: Final = 64
"""Most bindings that are decided and not sent; beyond that, deciding waits."""
BIND_TIMEOUT: Final = 30.0
"""Seconds for which a binding is retried."""
PAUSES: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
LONGEST_PAUSE: Final = 10.0
"""Longest Retry-After that is honoured, in seconds."""
LOOK_UPS: Final = 5
"""Look-ups by a worker before the task for unknown outcomes takes over."""
LOOK_UP_TIMEOUT: Final = 10.0
"""Seconds for one look-up."""
BETWEEN_LOOK_UPS: Final = 10.0
"""Seconds between two rounds of look-ups of unknown outcomes."""
MOST_UNKNOWN: Final = 256
"""Most unknown outcomes; beyond that, deciding waits, because each reserves resources that may be free."""
GONE: Final = 404
CONFLICT: Final = 409
TOO_MANY: Final = 429
FINAL: Final = frozenset(range(400, 500)) - {408, TOO_MANY}
"""Status codes that a retry would not change."""

NOT_LEADING: Final = "this instance does not lead any more"
NOT_BOUND: Final = "the extender reported success, but the pod is not bound"
NO_WORKER: Final = "no worker for plugin {} in this service"

log = logging.getLogger(__name__)


class BindingListener(Protocol):
    """Receives the outcome of each binding."""

    def bound(self, command: Bind) -> None:
        """Record a bound pod."""

    def not_bound(self, command: Bind, reason: str) -> None:
        """Record a failed binding and its reason."""


class ExtenderCaller(Protocol):
    """Calls the extenders of the configuration."""

    def ask(self, command: AskExtenders) -> None:
        """Start to ask extenders about a pod; the answer arrives as an event."""

    async def bind(self, extender: str, pod: Pod, node: str) -> str:
        """Let an extender bind a pod; return the reason of a failure, or an empty text."""

    def ignores(self, extender: str) -> bool:
        """Return whether a failure of this extender to bind a pod is ignored."""


class UnknownBinding(msgspec.Struct, frozen=True):
    """A binding with an unknown outcome; *problem* is the reason to report if it turns out to have failed."""

    problem: str


class Executor:
    """Performs the commands of the loop."""

    def __init__(  # noqa: PLR0913 - its clients and its callbacks
        self,
        client: KubeClient,
        answer: Callable[[Event], None],
        status: PodStatusSink,
        listener: BindingListener,
        *,
        extenders: ExtenderCaller | None = None,
        may_act: Callable[[], bool] = lambda: True,
        rate_limit: RateLimit | None = None,
        clock: SteadyClock | None = None,
        wake: Callable[[], None] = lambda: None,
        settled: Callable[[PodUid], bool] = lambda _: False,
        volumes: VolumeWorker | None = None,
    ) -> None:
        """
        Report outcomes as events with *answer*; call *may_act* right before every write that places or removes a pod.

        *wake* wakes a host that waits because the executor is busy. *settled* returns whether the loop has learned a
        binding's outcome from its watch; then the look-ups end. *extenders* is needed if the loop has extenders, and
        *volumes* does the work of VolumeBinding.
        """
        self._client = client
        self._answer = answer
        self._status = status
        self._listener = listener
        self._extenders = extenders
        self._may_act = may_act
        self._rate_limit = rate_limit or RateLimit(0.0, 0)
        self._clock = clock or SteadyClock()
        self._wake = wake
        self._preemption = PreemptionWriter(client, answer, status, may_act=may_act, clock=self._clock)
        self._waiting: asyncio.Queue[Bind | PreemptionWrite] = asyncio.Queue()
        self._active = 0
        self._settled = settled
        self._volumes = volumes
        self._unknown: dict[PodUid, tuple[Bind, str]] = {}
        """Bindings with an unknown outcome, and the reason to report if they failed; oldest first."""
        self._doubt = asyncio.Event()

    @property
    def busy(self) -> bool:
        """Whether deciding must wait for bindings."""
        return self._waiting.qsize() >= MOST_WAITING or len(self._unknown) >= MOST_UNKNOWN

    @property
    def unknown(self) -> int:
        """The number of bindings with an unknown outcome."""
        return len(self._unknown)

    @property
    def in_flight(self) -> int:
        """The number of commands that are queued or in flight."""
        return self._waiting.qsize() + self._active + (0 if self._volumes is None else self._volumes.in_flight)

    def perform(self, command: Command) -> None:
        """Queue or perform a command of the loop."""
        match command:
            case Bind():
                self._waiting.put_nowait(command)
            case AskExtenders():
                self._known_extenders().ask(command)
            case Evict() | Nominate():
                self._waiting.put_nowait(self._preemption.ordered(command))
            case ReportUnschedulable(pod, decision):
                # Loss of leadership is of no use to the pod's owner; the new leader reports on the pod.
                if decision.message != NOT_LEADING:
                    self._status.pending(pod, decision)
            case DoWork(task=BindVolumes() as task) if self._volumes is not None:
                self._volumes.perform(command, task)
            case DoWork(pod, _, plugin, attempt, _):
                self._answer(WorkFailed(pod.uid, plugin, attempt, NO_WORKER.format(plugin)))
            case ReportPluginError(plugin, point, message, about_pod):
                fields = {"plugin": plugin, "point": point, "pod": "" if about_pod is None else about_pod.key}
                log.error("plugin failed: %s", message, extra={"fields": fields})
            case WakeAt():
                raise AssertionError("the host keeps the time")

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(WORKERS):
                tasks.create_task(self._work(), name=f"executor {number}")
            tasks.create_task(self._look_again(), name="executor look-ups")
            if self._volumes is not None:
                tasks.create_task(self._volumes.run(), name="executor volumes")

    async def _work(self) -> None:
        while True:
            command = await self._waiting.get()
            self._active += 1
            try:
                await self._do(command)
            except Exception as error:
                # One command that fails must not end the worker; log it, and report the binding as failed.
                log.exception("command failed: %s", type(command).__name__)
                if isinstance(command, Bind):
                    self._not_bound(command, f"{type(error).__name__}: {error}")
            finally:
                self._active -= 1
                self._wake()

    async def _do(self, command: Bind | PreemptionWrite) -> None:
        await self._rate_limit.turn()
        if isinstance(command, Bind):
            bind = self._bind_by_extender if command.extender else self._bind
            self._conclude(command, await bind(command))
        else:
            await self._preemption.perform(command)

    def _conclude(self, command: Bind, outcome: str | UnknownBinding | None) -> None:
        """Report the outcome of a binding: the reason of a failure, or None for success."""
        if isinstance(outcome, UnknownBinding):
            log.warning("bind outcome unknown, looking up: %s: %s", command.pod.key, outcome.problem)
            self._unknown[command.pod.uid] = (command, outcome.problem)
            self._doubt.set()
        elif outcome is None:
            self._answer(BindDone(command.pod.uid))
            self._listener.bound(command)
            self._status.bound(command.pod, command.node)
        else:
            self._not_bound(command, outcome)

    def _not_bound(self, command: Bind, reason: str) -> None:
        self._answer(BindFailed(command.pod.uid, reason))
        self._listener.not_bound(command, reason)

    # -- bindings ----------------------------------------------------------------------------------------------------

    async def _bind(self, command: Bind) -> str | UnknownBinding | None:
        """
        Bind a pod; return the reason of a failure, or None.

        After an attempt without a response, only the API server's state of the pod ends this: the binding may have
        happened, and its resources must not be given to another pod.
        """
        pod, node = command.pod, command.node
        annotations = {DECISION_ANNOTATION: encode_note(command.decision)} if command.decision is not None else None
        body = encode_binding(pod, node, annotations)
        began = asyncio.get_running_loop().time()
        doubtful = False
        for attempt in itertools.count():
            if not self._may_act():
                return await self._fate(pod, node, NOT_LEADING) if doubtful else NOT_LEADING
            pause = PAUSES[min(attempt, len(PAUSES) - 1)]
            try:
                await pod_writes.bind(self._client, pod.namespace, pod.name, body)
                return None
            except ApiError as error:
                problem = str(error)
                if error.status == GONE:
                    return problem
                if error.status in FINAL:
                    # A repeated binding also gets a conflict if the first one succeeded and its response was lost.
                    return await self._fate(pod, node, problem) if doubtful or error.status == CONFLICT else problem
                doubtful = doubtful or error.status != TOO_MANY
                pause = max(pause, min(error.retry_after or 0.0, LONGEST_PAUSE))
            except UnreachableError as error:
                problem, doubtful = str(error), True
            tried = asyncio.get_running_loop().time() - began
            if tried + pause > BIND_TIMEOUT:
                problem = f"{problem} (tried for {tried:.0f} s)"
                return await self._fate(pod, node, problem) if doubtful else problem
            log.debug("bind failed, retrying: %s to %s: %s", pod.key, node, problem)
            await asyncio.sleep(pause)
        raise AssertionError("counting has no end")

    async def _bind_by_extender(self, command: Bind) -> str | UnknownBinding | None:
        """
        Let an extender bind a pod; return as `_bind` does.

        Only the API server's state of the pod counts: a failed call may have bound it. If the failure is ignored, the
        executor binds the pod.
        """
        pod, node, extender = command.pod, command.node, command.extender
        if not self._may_act():
            return NOT_LEADING
        extenders = self._known_extenders()
        problem = await extenders.bind(extender, pod, node)
        outcome = await self._fate(pod, node, problem or NOT_BOUND)
        if isinstance(outcome, str) and extenders.ignores(extender):
            log.info("extender did not bind, binding: %s to %s: %s", pod.key, node, outcome)
            return await self._bind(command)
        return outcome

    def _known_extenders(self) -> ExtenderCaller:
        assert self._extenders is not None, "only a loop with extenders returns such commands"
        return self._extenders

    async def _fate(self, pod: Pod, node: str, problem: str) -> str | UnknownBinding | None:
        """Return the outcome for a pod that may be bound; `UnknownBinding` if the API server does not answer soon."""
        for attempt in range(LOOK_UPS):
            outcome = await self._look_up(pod, node, problem)
            if not isinstance(outcome, UnknownBinding):
                return outcome
            await asyncio.sleep(PAUSES[min(attempt, len(PAUSES) - 1)])
        return UnknownBinding(problem)

    async def _look_up(self, pod: Pod, node: str, problem: str) -> str | UnknownBinding | None:
        """Look a pod up once: return None if it is on *node*, *problem* if it is not."""
        try:
            async with asyncio.timeout(LOOK_UP_TIMEOUT):
                found = decode_pod_location(await self._client.request("GET", key_of(pod).path))
        except ApiError as error:
            if error.status == GONE:
                return problem
            said = str(error)
        except (UnreachableError, WireError) as error:
            said = str(error)
        except TimeoutError:
            said = "no answer in time"
        else:
            return None if (found.uid, found.node) == (pod.uid, node) else problem
        log.debug("pod look-up failed, retrying: %s: %s", pod.key, said)
        return UnknownBinding(problem)

    async def _look_again(self) -> None:
        """Look up pods with an unknown outcome, one after the other, until each is known."""
        while True:
            while not self._unknown:
                self._doubt.clear()
                await self._doubt.wait()
            await asyncio.sleep(BETWEEN_LOOK_UPS)
            for uid, (command, problem) in list(self._unknown.items()):
                settled = self._settled(uid)
                outcome = (
                    UnknownBinding(problem) if settled else await self._look_up(command.pod, command.node, problem)
                )
                if settled or not isinstance(outcome, UnknownBinding):
                    del self._unknown[uid]
                    if not settled:
                        self._conclude(command, outcome)
                    self._wake()
