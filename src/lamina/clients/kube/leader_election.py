"""
Leader election with a Lease (coordination.k8s.io/v1): one of several schedulers acts, the others stand by.

    standby --lease released, or not renewed for its whole duration--> leading
    leading --no renewal for `renew` seconds, or another holder--> standby

The rules are client-go's (tools/leaderelection). Only the local clock is used: a standby measures how long the record
has not changed, so clocks of machines may differ. There is no fencing: a request in flight when leadership ends still
arrives. So callers check `may_act` directly before each write. It reads the clock at that moment, so a process that was
suspended for longer than `renew` does not write.
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
"""A standby waits `retry` × (1 to 1 + JITTER), at random, so that standbys do not all try at once."""

log = logging.getLogger(__name__)


def since_boot() -> float:
    """Return the time of a clock that includes suspend, where the system has one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class LeaseTimings(msgspec.Struct, frozen=True):
    """Lease timings in seconds; the defaults are kube-scheduler's."""

    lease: float = 15.0
    """How long standbys wait for a holder that does not renew."""
    renew: float = 10.0
    """How long a holder that cannot renew continues to act."""
    retry: float = 2.0
    """How often the holder renews and the standbys check."""

    def __post_init__(self) -> None:
        if not self.lease > self.renew > JITTER * self.retry > 0:
            timings = f"lease {self.lease:g} s, renew {self.renew:g} s, retry {self.retry:g} s"
            raise WiringError(f"{timings}: need lease > renew > {JITTER:g} × retry > 0")


class LeaseSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    """``spec`` of a Lease."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct, rename="camel"):
    metadata: msgspec.Raw
    """As the server sent it, so that a PUT keeps labels and owners and matches the resourceVersion."""
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)
    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"


_DECODER: Final = msgspec.json.Decoder(_Lease)


class LeaderElector:
    """One candidate for one Lease."""

    def __init__(  # noqa: PLR0913  the lease, the identity, and clocks
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
        """Compete for *namespace*/*name* as *identity*, which must be unique to this process."""
        if not identity:
            raise WiringError("a candidate for a lease needs an identity")
        self.terms = terms
        self.holder = ""
        """Identity of the last known holder."""
        self.renewals = self.failures = self.gained = self.lost = 0
        self._client, self._namespace, self._name, self._identity = client, namespace, name, identity
        self._timing = timing or TimeSource(clock=since_boot)
        self._clock, self._wall = self._timing.clock, wall
        self._leading = False
        self._renewed_at = -float("inf")
        self._seen: _Lease | None = None
        self._seen_at = -float("inf")
        self._last_problem = ""

    @property
    def is_leader(self) -> bool:
        """Whether this process leads now: the same as `may_act`."""
        return self.may_act()

    def may_act(self) -> bool:
        """Return whether a write is allowed now."""
        return self._leading and self._clock() - self._renewed_at < self.terms.renew

    async def run(self, on_change: Callable[[bool], None]) -> None:
        """
        Compete until cancelled; call *on_change* with True when leadership begins and with False when it ends.

        When cancelled as leader, it releases the lease, so that a standby takes over at once. Stop writing first.
        """
        try:
            while True:
                await self._step(on_change)
        finally:
            if self._leading:
                self._end(on_change, "stopped")
                await self._release()

    async def _step(self, on_change: Callable[[bool], None]) -> None:
        """Try once, report a change of leadership, and wait until the next try is due."""
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
        """Return the seconds for which this process may act without another renewal."""
        return self._renewed_at + self.terms.renew - self._clock()

    def _begin(self, on_change: Callable[[bool], None]) -> None:
        self._leading = True
        self.gained += 1
        log.info("lease acquired, leading", extra={"lease": self._name, "identity": self._identity})
        on_change(True)

    def _end(self, on_change: Callable[[bool], None], why: str) -> None:
        self._leading = False
        self.lost += 1
        log.info("lease lost, no longer leading", extra={"lease": self._name, "identity": self._identity, "why": why})
        on_change(False)

    async def _try(self, patience: float) -> bool:
        """Acquire or renew; return False if another process holds the lease or the request failed."""
        begun = self._clock()
        try:
            async with asyncio.timeout(max(0.0, patience)):
                held = await self._acquire_or_renew(max(0.1, min(patience, self.terms.renew / 2)))
        except (ApiError, UnreachableError, TimeoutError, msgspec.DecodeError) as error:
            self.failures += 1
            problem = str(error) or "no response in time"
            if problem != self._last_problem:
                self._last_problem = problem
                log.warning("lease update failed, retrying", extra={"lease": self._name, "problem": problem})
            return False
        self._last_problem = ""
        if held:
            # Use the time of the request: the response may have been delayed.
            self._renewed_at = begun
            self.renewals += 1
        return held

    async def _acquire_or_renew(self, patience: float) -> bool:
        if self._leading and self._seen is not None and self._clock() - self._seen_at < self.terms.lease:
            with contextlib.suppress(ApiError):  # another writer changed the record: read it below
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
        """Return how long the holder may go without renewal: its own leaseDurationSeconds, if set."""
        return float(spec.lease_duration_seconds or self.terms.lease)

    def _claim(self, old: LeaseSpec) -> LeaseSpec:
        """Return the record with this process as holder: a renewal, or one more transition."""
        now, ours = micro_time(self._wall()), old.holder_identity == self._identity
        changes = old.lease_transitions or 0
        return LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=math.ceil(self.terms.lease),
            acquire_time=old.acquire_time if ours and old.acquire_time else now,
            renew_time=now,
            # Only a newly created lease has had no transition.
            lease_transitions=changes if ours or old == LeaseSpec() else changes + 1,
        )

    async def _write(self, method: str, lease: _Lease, patience: float, spec: LeaseSpec) -> None:
        """Write the record; the server rejects it if the resourceVersion in *lease* is outdated."""
        path = self._path() if method == "PUT" else self._path().rpartition("/")[0]
        body = msgspec.json.encode(_Lease(lease.metadata, spec))
        answer = await self._client.request(method, path, body=body, timeout=patience)
        self._seen, self._seen_at, self.holder = _DECODER.decode(answer), self._clock(), spec.holder_identity or ""

    async def _release(self) -> None:
        """Release the lease if this process still holds it."""
        patience, now = self.terms.retry, micro_time(self._wall())
        try:
            async with asyncio.timeout(patience):
                found = _DECODER.decode(await self._client.request("GET", self._path(), timeout=patience))
                if found.spec.holder_identity == self._identity:
                    spec = LeaseSpec("", 1, now, now, found.spec.lease_transitions)
                    await self._write("PUT", found, patience, spec)
        except (ApiError, UnreachableError, TimeoutError, msgspec.DecodeError) as error:
            problem = str(error) or "no response in time"
            log.warning("lease release failed", extra={"lease": self._name, "problem": problem})

    def _path(self) -> str:
        folder = f"/apis/coordination.k8s.io/v1/namespaces/{quote(self._namespace, safe='')}/leases"
        return f"{folder}/{quote(self._name, safe='')}"
