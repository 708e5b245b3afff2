"""
Performs the loop's commands against the API server.

Bindings are sent by a fixed number of workers, so that an outage means a queue and not a storm. Whether a binding whose
answer was lost has happened is found out before anything is said about it: the room it may have taken is kept until then.
What is only told to people (conditions, events) has workers of its own and never holds a binding up.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from lamina.clients.kube import writes
from lamina.clients.kube.errors import ApiError, Unreachable
from lamina.clients.kube.transport import KubeClient
from lamina.model.errors import LaminaError
from lamina.model.events import BindDone, BindFailed, Event, WorkFailed
from lamina.model.pod import Pod
from lamina.scheduling.framework.commands import (
    Bind,
    Command,
    DoWork,
    Evict,
    Nominate,
    ReportPluginError,
    TellPending,
    WakeAt,
)
from lamina.services.intake.clock import Clock
from lamina.services.scheduler.telling import Teller, key_of
from lamina.services.scheduler.throttle import Throttle
from lamina.wire.decision_note import DECISION_ANNOTATION, encode_note
from lamina.wire.errors import WireError
from lamina.wire.kube import decode_pod, encode_binding

WORKERS: Final = 16
"""Bindings on their way at once."""
MOST_WAITING: Final = 64
"""Bindings decided and not sent; with more, deciding waits."""
PATIENCE: Final = 30.0
"""Seconds for which a binding is tried whose fate is not known."""
PAUSES: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
LONGEST_PAUSE: Final = 10.0
"""However long a server asks to be left alone."""
GONE: Final = 404
CONFLICT: Final = 409
TOO_MANY: Final = 429
FINAL: Final = frozenset(range(400, 500)) - {408, TOO_MANY}
"""Answers that will not be other ones if the same is asked again."""

NOT_LEADING: Final = "this instance does not lead any more"
NO_WORKER: Final = "nobody does the work of plugin {} in this service"

log = logging.getLogger(__name__)


class Notes(Protocol):
    """Whoever is told how bindings went."""

    def bound(self, command: Bind) -> None:
        """A pod was bound."""

    def not_bound(self, command: Bind, reason: str) -> None:
        """A pod was not bound, and why."""


class Executor:
    """Does what the loop asks for."""

    def __init__(  # noqa: PLR0913 - whom it talks to, and what it may do
        self,
        client: KubeClient,
        answer: Callable[[Event], None],
        teller: Teller,
        notes: Notes,
        *,
        may_act: Callable[[], bool] = lambda: True,
        throttle: Throttle | None = None,
        clock: Clock | None = None,
        ring: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Answer with events; *may_act* is asked right before every write that places or removes a pod.

        Whoever waits because this is busy is woken by *ring*.
        """
        self._client = client
        self._answer = answer
        self._teller = teller
        self._notes = notes
        self._may_act = may_act
        self._throttle = throttle or Throttle(0.0, 0)
        self._clock = clock or Clock()
        self._ring = ring
        self._waiting: asyncio.Queue[Command] = asyncio.Queue()
        self._active = 0

    @property
    def busy(self) -> bool:
        """Whether deciding has to wait for bindings."""
        return self._waiting.qsize() >= MOST_WAITING

    @property
    def underway(self) -> int:
        """How many commands are waiting or being performed."""
        return self._waiting.qsize() + self._active

    def perform(self, command: Command) -> None:
        """Start doing what the loop asks for."""
        match command:
            case Bind() | Evict() | Nominate():
                self._waiting.put_nowait(command)
            case TellPending(pod, decision):
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
        await self._throttle.pass_by()
        match command:
            case Bind():
                refused = await self._bind(command)
                if refused is None:
                    self._answer(BindDone(command.pod.uid))
                    self._notes.bound(command)
                    self._teller.bound(command.pod, command.node)
                else:
                    self._not_bound(command, refused)
            case Evict(pod, preemptor, _):
                told = (preemptor.scheduler_name, self._clock.now())
                await self._try(
                    "evict",
                    pod,
                    lambda: writes.preempt_pod(self._client, key_of(pod), *told, may_act=self._may_act),
                )
            case Nominate(pod, node):
                await self._try("nominate", pod, lambda: self._nominate(pod, node))

    def _not_bound(self, command: Bind, reason: str) -> None:
        self._answer(BindFailed(command.pod.uid, reason))
        self._notes.not_bound(command, reason)

    # -- bindings ----------------------------------------------------------------------------------------------------

    async def _bind(self, command: Bind) -> str | None:
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
                await writes.bind(self._client, pod.namespace, pod.name, body)
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
            except Unreachable as error:
                problem, doubtful = str(error), True
            tried = asyncio.get_running_loop().time() - began
            if tried + pause > PATIENCE:
                problem = f"{problem} (tried for {tried:.0f} s)"
                return await self._fate(pod, node, problem) if doubtful else problem
            log.debug("binding %s to %s again: %s", pod.key, node, problem)
            await asyncio.sleep(pause)
        raise AssertionError("counting has no end")

    async def _fate(self, pod: Pod, node: str, problem: str) -> str | None:
        """Find out what became of a pod that may have been bound; asks until there is an answer."""
        for attempt in itertools.count():
            try:
                found = await self._client.request("GET", key_of(pod).path)
                now = decode_pod(found)
                return None if now.uid == pod.uid and now.node_name == node else problem
            except ApiError as error:
                if error.status == GONE:
                    return problem
                log.debug("looking up %s again: %s", pod.key, error)
            except Unreachable as error:
                log.debug("looking up %s again: %s", pod.key, error)
            except WireError as error:
                return f"{problem}; looking it up: {error}"
            await asyncio.sleep(PAUSES[min(attempt, len(PAUSES) - 1)])
        raise AssertionError("counting has no end")

    # -- making room -------------------------------------------------------------------------------------------------

    async def _nominate(self, pod: Pod, node: str) -> None:
        patch = writes.status_patch(key_of(pod), self._clock.now(), node=node)
        if patch is not None:
            await writes.patch_pod_status(self._client, key_of(pod), patch)

    async def _try(self, what: str, pod: Pod, act: Callable[[], Awaitable[object]]) -> None:
        """Do something that is asked for again if it does not succeed."""
        if not self._may_act():
            return
        try:
            await act()
        except LaminaError as error:
            log.warning("cannot %s %s: %s", what, pod.key, error)
