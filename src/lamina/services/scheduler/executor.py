"""
Performs the loop's commands against the API server.

Bindings are sent by a fixed number of workers, so that an outage means a queue and not a storm. Whether a binding whose
answer was lost has happened is found out before anything is said about it: the room it may have taken is kept until then.
If the API server does not tell for a while, the worker is freed and one task goes on looking, pod by pod; meanwhile the loop
keeps the assumption. An unknown outcome is never reported as "not bound".
What is only told to people (conditions, events) has workers of its own and never holds a binding up.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from lamina.clients.kube import pod_writes
from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.kube.transport import KubeClient
from lamina.clients.rate_limit import RateLimit
from lamina.model.errors import LaminaError
from lamina.model.events import BindDone, BindFailed, Event, WorkFailed
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import (
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
from lamina.wire.decision_note import DECISION_ANNOTATION, encode_note
from lamina.wire.errors import WireError
from lamina.wire.kube.codec import encode_binding
from lamina.wire.kube.pod_location import decode_pod_location

WORKERS: Final = 16
"""Bindings on their way at once."""
MOST_WAITING: Final = 64
"""Bindings decided and not sent; with more, deciding waits."""
BIND_TIMEOUT: Final = 30.0
"""Seconds for which a binding is tried whose fate is not known."""
PAUSES: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
LONGEST_PAUSE: Final = 10.0
"""However long a server asks to be left alone."""
LOOK_UPS: Final = 5
"""Times a worker looks a pod up before it leaves that to the task for unknown outcomes."""
LOOK_UP_TIMEOUT: Final = 10.0
"""Seconds for one look-up."""
BETWEEN_LOOK_UPS: Final = 10.0
"""Seconds between two rounds of looking up the pods whose outcome is unknown."""
MOST_UNKNOWN: Final = 256
"""Pods whose outcome is unknown; with more, deciding waits, since each of them holds room that may be free."""
GONE: Final = 404
CONFLICT: Final = 409
TOO_MANY: Final = 429
FINAL: Final = frozenset(range(400, 500)) - {408, TOO_MANY}
"""Answers that will not be other ones if the same is asked again."""

NOT_LEADING: Final = "this instance does not lead any more"
NO_WORKER: Final = "nobody does the work of plugin {} in this service"

log = logging.getLogger(__name__)


class BindingListener(Protocol):
    """Whoever is told how bindings went."""

    def bound(self, command: Bind) -> None:
        """A pod was bound."""

    def not_bound(self, command: Bind, reason: str) -> None:
        """A pod was not bound, and why."""


class UnknownBinding(msgspec.Struct, frozen=True):
    """The outcome of a binding is not known; *problem* is what to report should it turn out not to have happened."""

    problem: str


class Executor:
    """Does what the loop asks for."""

    def __init__(  # noqa: PLR0913 - whom it talks to, and what it may do
        self,
        client: KubeClient,
        answer: Callable[[Event], None],
        teller: PodStatusSink,
        notes: BindingListener,
        *,
        may_act: Callable[[], bool] = lambda: True,
        rate_limit: RateLimit | None = None,
        clock: SteadyClock | None = None,
        ring: Callable[[], None] = lambda: None,
        settled: Callable[[PodUid], bool] = lambda _: False,
    ) -> None:
        """
        Answer with events; *may_act* is asked right before every write that places or removes a pod.

        *ring* wakes the host that waits because this is busy. *settled* says whether the loop has learned a binding's
        outcome otherwise, by its watch: then nothing is looked up any more.
        """
        self._client = client
        self._answer = answer
        self._teller = teller
        self._notes = notes
        self._may_act = may_act
        self._rate_limit = rate_limit or RateLimit(0.0, 0)
        self._clock = clock or SteadyClock()
        self._ring = ring
        self._waiting: asyncio.Queue[Command] = asyncio.Queue()
        self._active = 0
        self._settled = settled
        self._unknown: dict[PodUid, tuple[Bind, str]] = {}
        """Bindings whose outcome is not known, and what to report if they did not happen; the oldest first."""
        self._doubt = asyncio.Event()

    @property
    def busy(self) -> bool:
        """Whether deciding has to wait for bindings."""
        return self._waiting.qsize() >= MOST_WAITING or len(self._unknown) >= MOST_UNKNOWN

    @property
    def unknown(self) -> int:
        """How many bindings have an outcome that is not known."""
        return len(self._unknown)

    @property
    def underway(self) -> int:
        """How many commands are waiting or being performed."""
        return self._waiting.qsize() + self._active

    def perform(self, command: Command) -> None:
        """Start doing what the loop asks for."""
        match command:
            case Bind() | Evict() | Nominate():
                self._waiting.put_nowait(command)
            case ReportUnschedulable(pod, decision):
                # That we do not lead any more is nothing a pod's owner can act on; whoever leads now tells the rest.
                if decision.message != NOT_LEADING:
                    self._teller.pending(pod, decision)
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

    async def _work(self) -> None:
        while True:
            command = await self._waiting.get()
            self._active += 1
            try:
                await self._do(command)
            except Exception as error:
                # One pod that cannot be dealt with is one pod's misfortune, and everybody should hear of it.
                log.exception("cannot perform %s", type(command).__name__)
                if isinstance(command, Bind):
                    self._not_bound(command, f"{type(error).__name__}: {error}")
            finally:
                self._active -= 1
                self._ring()

    async def _do(self, command: Command) -> None:
        await self._rate_limit.turn()
        match command:
            case Bind():
                self._conclude(command, await self._bind(command))
            case Evict(pod, preemptor, _):
                told = (preemptor.scheduler_name, self._clock.now())
                await self._try(
                    "evict",
                    pod,
                    lambda: pod_writes.preempt_pod(self._client, key_of(pod), *told, may_act=self._may_act),
                )
            case Nominate(pod, node):
                await self._try("nominate", pod, lambda: self._nominate(pod, node))

    def _conclude(self, command: Bind, outcome: str | UnknownBinding | None) -> None:
        """Report a binding's outcome: why not, None for done."""
        if isinstance(outcome, UnknownBinding):
            log.warning("whether %s was bound is not known: %s", command.pod.key, outcome.problem)
            self._unknown[command.pod.uid] = (command, outcome.problem)
            self._doubt.set()
        elif outcome is None:
            self._answer(BindDone(command.pod.uid))
            self._notes.bound(command)
            self._teller.bound(command.pod, command.node)
        else:
            self._not_bound(command, outcome)

    def _not_bound(self, command: Bind, reason: str) -> None:
        self._answer(BindFailed(command.pod.uid, reason))
        self._notes.not_bound(command, reason)

    # -- bindings ----------------------------------------------------------------------------------------------------

    async def _bind(self, command: Bind) -> str | UnknownBinding | None:
        """
        Bind a pod; return why not, or None.

        Once an attempt was made whose answer did not come, only the API server's own word about the pod ends this: the
        binding may have happened, and the room it takes must not be given to another.
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
                    # A conflict is also what a repeated binding gets whose first answer was lost.
                    return await self._fate(pod, node, problem) if doubtful or error.status == CONFLICT else problem
                doubtful = doubtful or error.status != TOO_MANY
                pause = max(pause, min(error.retry_after or 0.0, LONGEST_PAUSE))
            except UnreachableError as error:
                problem, doubtful = str(error), True
            tried = asyncio.get_running_loop().time() - began
            if tried + pause > BIND_TIMEOUT:
                problem = f"{problem} (tried for {tried:.0f} s)"
                return await self._fate(pod, node, problem) if doubtful else problem
            log.debug("binding %s to %s again: %s", pod.key, node, problem)
            await asyncio.sleep(pause)
        raise AssertionError("counting has no end")

    async def _fate(self, pod: Pod, node: str, problem: str) -> str | UnknownBinding | None:
        """Find out what became of a pod that may have been bound; `UnknownBinding` if the server does not tell soon."""
        for attempt in range(LOOK_UPS):
            outcome = await self._look_up(pod, node, problem)
            if not isinstance(outcome, UnknownBinding):
                return outcome
            await asyncio.sleep(PAUSES[min(attempt, len(PAUSES) - 1)])
        return UnknownBinding(problem)

    async def _look_up(self, pod: Pod, node: str, problem: str) -> str | UnknownBinding | None:
        """Ask once what became of a pod: None if it is on *node*, *problem* if it is not."""
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
        log.debug("looking up %s again: %s", pod.key, said)
        return UnknownBinding(problem)

    async def _look_again(self) -> None:
        """Look up the pods whose outcome is unknown, one after the other, until each is known."""
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
                    self._ring()

    # -- making room -------------------------------------------------------------------------------------------------

    async def _nominate(self, pod: Pod, node: str) -> None:
        patch = pod_writes.status_patch(key_of(pod), self._clock.now(), node=node)
        if patch is not None:
            await pod_writes.patch_pod_status(self._client, key_of(pod), patch)

    async def _try(self, what: str, pod: Pod, act: Callable[[], Awaitable[object]]) -> None:
        """Do something that is asked for again if it does not succeed."""
        if not self._may_act():
            return
        try:
            await act()
        except LaminaError as error:
            log.warning("cannot %s %s: %s", what, pod.key, error)
