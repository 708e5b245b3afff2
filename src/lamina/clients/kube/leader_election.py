"""
Leadership by a Lease (coordination.k8s.io/v1): of several schedulers one acts, the others stand by.

    standing by --holder gone, or nothing new from it for its whole term--> leading
    leading --no renewal for `renew` seconds, or another holder--> standing by

The rules are client-go's (tools/leaderelection). Only our own clock counts, and of the holder's only that its record
changes, so that clocks may differ. There is no fencing: a request that is under way when leadership ends still arrives.
Therefore whoever acts asks `may_act` right before each write. It reads the clock at that moment: a process that was
stopped for longer than `renew` gets no for an answer even before it has found out anything else.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import msgspec

from lamina.clients.kube.api_timestamps import micro_time
from lamina.clients.kube.backoff import TimeSource
from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.kube.pod_writes import WriteClient
from lamina.model.errors import WiringError

JITTER: Final = 1.2
"""How much longer than `retry` a wait may be by chance, so that those standing by do not all come at once."""

log = logging.getLogger(__name__)


def since_boot() -> float:
    """Read a clock that runs on while the machine sleeps, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class LeaseTimings(msgspec.Struct, frozen=True):
    """Times in seconds; the defaults are kube-scheduler's."""

    lease: float = 15.0
    """How long others wait for a holder that is silent."""
    renew: float = 10.0
    """How long a holder acts that cannot renew."""
    retry: float = 2.0
    """How often it renews, and the others look."""

    def __post_init__(self) -> None:
        if not self.lease > self.renew > JITTER * self.retry > 0:
            said = f"lease {self.lease:g} s, renew {self.renew:g} s, retry {self.retry:g} s"
            raise WiringError(f"{said}: each has to be longer than the next, renew longer than {JITTER:g} × retry")


class LeaseSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    """``spec`` of a Lease."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct, rename="camel"):
    metadata: msgspec.Raw
    """As the server sent it, so that labels and owners survive, with the version that a PUT has to match."""
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)
    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"


_DECODER: Final = msgspec.json.Decoder(_Lease)


class LeaderElector:
    """One contender for one Lease."""

    def __init__(  # noqa: PLR0913  what it contends for, as whom, and clocks
        self,
        client: WriteClient,
        namespace: str,
        name: str,
        identity: str,
        *,
        terms: LeaseTimings = LeaseTimings(),  # noqa: B008  frozen
        timing: TimeSource | None = None,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        """Contend for *namespace*/*name* as *identity*, which no other process may have."""
        if not identity:
            raise WiringError("a contender for a lease needs an identity")
        self.terms = terms
        self.holder = ""
        """Who holds the lease as far as we know."""
        self.renewals = self.failures = self.gained = self.lost = 0
        self._client, self._namespace, self._name, self._identity = client, namespace, name, identity
        self._timing = timing or TimeSource(clock=since_boot)
        self._clock, self._wall = self._timing.clock, wall
        self._leading = False
        self._renewed_at = -float("inf")
        self._seen: _Lease | None = None
        self._seen_at = -float("inf")
        self._told = ""

    @property
    def is_leader(self) -> bool:
        """Whether we lead at this moment: the same as `may_act`."""
        return self.may_act()

    def may_act(self) -> bool:
        """Whether a write may be sent now."""
        return self._leading and self._clock() - self._renewed_at < self.terms.renew

    async def run(self, on_change: Callable[[bool], None]) -> None:
        """
        Contend until cancelled; *on_change* is called with True when we begin to lead and with False when we end.

        When cancelled as a leader it gives the lease back, so that another can take over at once. Stop acting first.
        """
        try:
            while True:
                await self._step(on_change)
        finally:
            if self._leading:
                self._end(on_change, "stopped")
                await self._release()

    async def _step(self, on_change: Callable[[bool], None]) -> None:
        """Try once, tell what changed, and wait until the next try is due."""
        terms = self.terms
        held = await self._try(self._left() if self._leading else terms.renew / 2)
        if held and not self._leading:
            self._begin(on_change)
        elif self._leading and (self.holder != self._identity or self._left() <= 0):
            self._end(on_change, f"held by {self.holder}" if self.holder != self._identity else "not renewed in time")
            return
        if self._leading:
            await self._timing.sleep(max(0.0, min(terms.retry, self._left())))
        else:
            await self._timing.sleep(terms.retry * (1.0 + JITTER * self._timing.rng.random()))

    def _left(self) -> float:
        """Seconds for which we may act without another renewal."""
        return self._renewed_at + self.terms.renew - self._clock()

    def _begin(self, on_change: Callable[[bool], None]) -> None:
        self._leading = True
        self.gained += 1
        log.info("leading", extra={"lease": self._name, "identity": self._identity})
        on_change(True)

    def _end(self, on_change: Callable[[bool], None], why: str) -> None:
        self._leading = False
        self.lost += 1
        log.info("no longer leading", extra={"lease": self._name, "identity": self._identity, "why": why})
        on_change(False)

    async def _try(self, patience: float) -> bool:
        """Acquire or renew; False if another holds the lease or the server cannot be asked."""
        begun = self._clock()
        try:
            async with asyncio.timeout(max(0.0, patience)):
                held = await self._acquire_or_renew(max(0.1, min(patience, self.terms.renew / 2)))
        except (ApiError, UnreachableError, TimeoutError, msgspec.DecodeError) as error:
            self.failures += 1
            said = str(error) or "no answer in time"
            if said != self._told:
                self._told = said
                log.warning("lease not updated", extra={"lease": self._name, "problem": said})
            return False
        self._told = ""
        if held:
            # What counts is when we asked: the answer may have been long on its way.
            self._renewed_at = begun
            self.renewals += 1
        return held

    async def _acquire_or_renew(self, patience: float) -> bool:
        if self._leading and self._seen is not None and self._clock() - self._seen_at < self.terms.lease:
            with contextlib.suppress(ApiError):  # somebody else wrote it: look at what it says
                await self._write("PUT", self._seen, patience, self._claim(self._seen.spec))
                return True
        try:
            found = _DECODER.decode(await self._client.request("GET", self._path(), timeout=patience))
        except ApiError as error:
            if error.status != 404:
                raise
            metadata = msgspec.json.encode({"name": self._name, "namespace": self._namespace})
            await self._write("POST", _Lease(msgspec.Raw(metadata)), patience, self._claim(LeaseSpec()))
            return True
        if self._seen is None or found.spec != self._seen.spec:
            self._seen_at = self._clock()
        self._seen, self.holder = found, found.spec.holder_identity or ""
        if self.holder not in ("", self._identity) and self._clock() - self._seen_at < self._term(found.spec):
            return False
        await self._write("PUT", found, patience, self._claim(found.spec))
        return True

    def _term(self, spec: LeaseSpec) -> float:
        """How long a holder may be silent, by its own word."""
        return float(spec.lease_duration_seconds or self.terms.lease)

    def _claim(self, old: LeaseSpec) -> LeaseSpec:
        """Write ourselves into the record: as a renewal, or as one more change of hands."""
        now, ours = micro_time(self._wall()), old.holder_identity == self._identity
        changes = old.lease_transitions or 0
        return LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=math.ceil(self.terms.lease),
            acquire_time=old.acquire_time if ours and old.acquire_time else now,
            renew_time=now,
            # A lease that is new, and only that, has changed hands no times.
            lease_transitions=changes if ours or old == LeaseSpec() else changes + 1,
        )

    async def _write(self, method: str, lease: _Lease, patience: float, spec: LeaseSpec) -> None:
        """Write the record over the version in *lease*; the server refuses if there is another by now."""
        path = self._path() if method == "PUT" else self._path().rpartition("/")[0]
        body = msgspec.json.encode(_Lease(lease.metadata, spec))
        answer = await self._client.request(method, path, body=body, timeout=patience)
        self._seen, self._seen_at, self.holder = _DECODER.decode(answer), self._clock(), spec.holder_identity or ""

    async def _release(self) -> None:
        """Give the lease back, if it is still ours."""
        patience, now = self.terms.retry, micro_time(self._wall())
        try:
            async with asyncio.timeout(patience):
                found = _DECODER.decode(await self._client.request("GET", self._path(), timeout=patience))
                if found.spec.holder_identity == self._identity:
                    spec = LeaseSpec("", 1, now, now, found.spec.lease_transitions)
                    await self._write("PUT", found, patience, spec)
        except (ApiError, UnreachableError, TimeoutError, msgspec.DecodeError) as error:
            log.warning("lease not released", extra={"lease": self._name, "problem": str(error) or "no answer in time"})

    def _path(self) -> str:
        folder = f"/apis/coordination.k8s.io/v1/namespaces/{quote(self._namespace, safe='')}/leases"
        return f"{folder}/{quote(self._name, safe='')}"
