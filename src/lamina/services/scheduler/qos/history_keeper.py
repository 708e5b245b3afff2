"""
Keeps the history of the QoS engine in the API: reads it before the first decision, and writes it while this one leads.

    caches synced    read ──> the engine adopts it, with the pods that exist
    lease acquired   read again, if another leader wrote since ──> pods are decided
    leader           pods were created, bound or ended ──> write, at most every `BETWEEN_WRITES` seconds; and at the end

The object is a cache of what was seen. If it is missing, unreadable, forbidden or too large, the scheduler works
without it: after a restart it then measures existing pods only. Each kind of failure is logged once.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Final, Protocol
from urllib.parse import quote

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.model.errors import InputError, LaminaError
from lamina.qos.engine import QosEngine
from lamina.qos.qos_summary import QosSummary
from lamina.services.informers.clock import SteadyClock
from lamina.services.scheduler.qos.history_conversion import stored_history, summary_of
from lamina.wire.custom_resources.api_group import GROUP, METADATA_LIMIT, VERSION
from lamina.wire.custom_resources.qos_history import (
    MOST_CONTROLLERS,
    MOST_PODS,
    PLURAL,
    SPEC_LIMIT,
    decode_qos_history,
    encode_qos_history,
)
from lamina.wire.errors import WireError
from lamina.wire.kube.meta import decode_meta

PATH: Final = f"/apis/{GROUP}/{VERSION}/{PLURAL}"
LOOK: Final = 0.25
"""Seconds between two looks for changes: one comparison of numbers."""
BETWEEN_WRITES: Final = 5.0
"""Least seconds between two writes."""
AFTER_REJECTION: Final = 60.0
"""Seconds until the next write after a rejection that needs an operator."""
TIMEOUT: Final = 5.0
READ_FOR: Final = 30.0
"""Seconds for which reading is tried while the API server does not answer; then pods are decided without history."""
ADOPTED_WITHIN: Final = 10.0
"""Seconds after which pods are decided even if the engine did not adopt the history."""
RETRY: Final = 1.0
NOT_FOUND: Final = 404
FORBIDDEN: Final = 403
CONFLICT: Final = 409
PASSING: Final = frozenset({408, 429})
SMALLEST: Final = 50
"""Controllers in the smallest history that is tried; a larger object is rejected for another reason."""
HINTS: Final = {
    FORBIDDEN: "; apply deploy/rbac/optional/scheduler-qos.yaml",
    NOT_FOUND: "; apply deploy/crds/qoshistories.yaml",
    CONFLICT: "; another client writes it: do two schedulers use the same lease?",
}

log = logging.getLogger(__name__)


class ApiClient(Protocol):
    """The part of the client that reads and writes the object."""

    async def request(
        self, method: str, path: str, *, body: bytes | None = None, timeout: float = 30.0, limit: int = 0
    ) -> bytes:
        """Send a request and return the body of a 2xx response; raises `LaminaError`."""


class QosHistoryKeeper:
    """Reads and writes the QosHistory of one scheduler."""

    def __init__(  # noqa: PLR0913 - its neighbours and its callbacks
        self,
        client: ApiClient,
        name: str,
        engine: Callable[[], QosEngine],
        *,
        adopt: Callable[[QosSummary], None],
        synced: Callable[[], bool],
        may_act: Callable[[], bool],
        wake: Callable[[], None],
        clock: SteadyClock,
    ) -> None:
        """
        Keep the history of *engine* under *name*.

        *engine* returns the current engine; *adopt* passes a summary that was read to the loop. *synced* returns
        whether all existing pods are known, *may_act* whether this instance leads. *wake* wakes the loop when pods may
        be decided.
        """
        self._client, self._engine, self._clock = client, engine, clock
        self._path = f"{PATH}/{quote(name, safe='')}"
        self._name = name
        self._adopt, self._synced, self._may_act, self._wake = adopt, synced, may_act, wake
        self._version: str | None = None
        """Resource version of the object that was read or written last; empty: there is none; None: not known."""
        self._loaded_at = -math.inf
        self._leads = False
        """Whether this instance led at the last look, and had read the history."""
        self._awaited: tuple[float, float] | None = None
        """Time of the summary that the engine has to adopt, and until when that is waited for."""
        self._written: tuple[QosEngine, int] | None = None
        """The engine and its changes that are written."""
        self._most_controllers, self._most_pods, self._most_slots = MOST_CONTROLLERS, MOST_PODS, MOST_PODS
        self._writing = asyncio.Lock()
        """Held during a write: the last one, at the end of the process, needs the version that the one before gets."""
        self._next = 0.0
        self._logged = ""
        """The last failure, which is logged once."""
        self.writes = 0

    @property
    def ready(self) -> bool:
        """Whether pods may be decided: this instance has adopted what the last leader measured."""
        if not self._leads:
            return False
        if self._awaited is None:
            return True
        at, until = self._awaited
        return self._engine().notes.adopted_at >= at or self._clock.now() > until

    async def run(self) -> None:
        """Write changes until cancelled, and read again whenever this instance becomes the leader."""
        while True:
            await self._look()
            await asyncio.sleep(LOOK)

    async def finish(self, patience: float) -> None:
        """Write the last changes, within *patience* seconds; for the end of the process."""
        if not (self.ready and self._may_act() and self._changed() and self._version is not None):
            return
        try:
            async with asyncio.timeout(patience):
                await self._write()
        except TimeoutError:
            log.warning("QoS history not written at the end: no answer within %g seconds", patience)

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        if not self._synced():
            return
        if not self._may_act():
            self._leads, self._written = False, None
            if self._loaded_at == -math.inf:
                # A standby measures too, and its page shows it.
                await self._load()
        elif not self._leads:
            # Another leader may have written since this instance read.
            if self._clock.now() - self._loaded_at > RETRY:
                await self._load()
            self._leads = True
            self._wake()
        elif self._changed() and self._clock.now() >= self._next:
            if self._version is None:
                loaded = await self._load()
                self._next = self._clock.now() + (0.0 if loaded else AFTER_REJECTION)
            elif self.ready:
                await self._write()

    def _changed(self) -> bool:
        engine = self._engine()
        return self._written != (engine, engine.notes.changes)

    async def _load(self) -> bool:
        """
        Read the object and pass its content on; try again for a while if the API server does not answer.

        Return whether it is known now if there is an object.
        """
        until = self._clock.now() + READ_FOR
        known = self._version
        while True:
            self._loaded_at = self._clock.now()
            try:
                body = await self._client.request(
                    "GET", self._path, timeout=TIMEOUT, limit=SPEC_LIMIT + 2 * METADATA_LIMIT
                )
                self._version = decode_meta(body).resource_version
                if self._version == known or self._written is not None:
                    # What this leader measured since its first write is newer.
                    return True
                summary = summary_of(decode_qos_history(body))
            except ApiError as error:
                if error.status == NOT_FOUND:
                    self._version = ""
                    return True
                if not _passing(error) or self._clock.now() >= until:
                    self._warn("read", error)
                    return False
            except UnreachableError as error:
                if self._clock.now() >= until:
                    self._warn("read", error)
                    return False
            except WireError as error:
                # The next write replaces it.
                self._warn("read", error)
                return self._version is not None
            else:
                now = self._clock.now()
                self._awaited = (summary.at, now + ADOPTED_WITHIN)
                self._adopt(summary)
                fields = {"controllers": len(summary.controllers), "age_s": round(now - summary.at, 1)}
                log.info("QoS history read", extra={"fields": fields})
                return True
            await asyncio.sleep(RETRY)

    async def _write(self) -> None:
        async with self._writing:
            # The write before can have stored the changes, or lost the version.
            if self._changed() and self._version is not None:
                await self._write_changes()

    async def _write_changes(self) -> None:
        now = self._clock.now()
        self._next = now + BETWEEN_WRITES
        engine = self._engine()
        written = (engine, engine.notes.changes)
        try:
            body = await self._encoded(now)
            if body is None:
                self._next = now + AFTER_REJECTION
                self._warn("written", InputError.one(self._name, "it is too large even without pods and slots"))
                return
            if not self._may_act():
                return
            if self._version:
                answer = await self._client.request("PUT", self._path, body=body, timeout=TIMEOUT)
            else:
                answer = await self._client.request("POST", PATH, body=body, timeout=TIMEOUT)
            self._version = decode_meta(answer).resource_version
        except ApiError as error:
            self._rejected(error, now)
        except LaminaError as error:
            # The object may have been written although no answer came.
            self._version = None
            self._warn("written", error)
        else:
            self._written = written
            self.writes += 1
            if self._logged:
                log.info("QoS history is written again")
                self._logged = ""

    async def _encoded(self, now: float) -> bytes | None:
        """Return the object, with as many controllers, slots and pods as fit; None if not even the fewest do."""
        while True:
            summary = self._engine().summary(now, self._most_controllers, self._most_pods)
            # Several thousand pods take a tenth of a second.
            body = await asyncio.to_thread(self._encode, summary)
            if body is not None or not self._shrink():
                return body

    def _encode(self, summary: QosSummary) -> bytes | None:
        return encode_qos_history(self._name, stored_history(summary, self._most_slots), self._version or "")

    def _shrink(self) -> bool:
        """
        Leave out pods first, which are needed only if they end around a restart, then slots, then controllers.

        Return whether that was possible.
        """
        if self._most_pods:
            self._most_pods = _half(self._most_pods)
        elif self._most_slots:
            self._most_slots = _half(self._most_slots)
        elif self._most_controllers > SMALLEST:
            self._most_controllers //= 2
        else:
            return False
        return True

    def _rejected(self, error: ApiError, now: float) -> None:
        if error.status == CONFLICT or (error.status == NOT_FOUND and self._version):
            # Another client wrote or deleted it.
            self._version = None
        elif error.status == 413 and self._shrink():
            self._next = now
        elif not _passing(error):
            self._next = now + AFTER_REJECTION
        self._warn("written", error)

    def _warn(self, what: str, error: LaminaError) -> None:
        """Log a failure, unless the last one was of the same kind."""
        status = error.status if isinstance(error, ApiError) else 0
        kind = f"{what} {type(error).__name__} {status}"
        if kind == self._logged:
            return
        self._logged = kind
        hint = HINTS.get(status, "")
        log.warning("QoS history not %s, a restart forgets deleted pods: %s%s", what, error, hint)


def _half(most: int) -> int:
    return most // 2 if most > SMALLEST else 0


def _passing(error: ApiError) -> bool:
    return error.status in PASSING or error.status >= 500
