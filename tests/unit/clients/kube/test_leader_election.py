"""Leadership: who may act, and for how long."""

import asyncio
import contextlib
import json
import random
from typing import Any

import pytest

from lamina.clients.kube.backoff import TimeSource
from lamina.clients.kube.errors import UnreachableError
from lamina.clients.kube.leader_election import LeaderElector, LeaseTimings
from lamina.model.errors import WiringError
from tests.unit.clients.kube.scripted_client import Instant, ScriptedClient, refusal

FOLDER = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
PATH = f"{FOLDER}/lamina"


class Leases:
    """A server that holds one lease, with versions."""

    def __init__(self):
        self.version = 0
        self.object: dict[str, Any] | None = None
        self.down = False

    def __call__(self, request) -> bytes:
        if self.down:
            raise UnreachableError(request.method, "connection refused")
        if request.method == "POST":
            assert request.path == FOLDER
            if self.object is not None:
                raise refusal(409, "already exists")
            return self.store(request.body)
        assert request.path == PATH
        if self.object is None:
            raise refusal(404)
        if request.method == "PUT":
            if request.body["metadata"].get("resourceVersion") != str(self.version):
                raise refusal(409, "the object has been modified")
            return self.store(request.body)
        return json.dumps(self.object).encode()

    def store(self, body) -> bytes:
        self.version += 1
        self.object = body | {"metadata": body["metadata"] | {"resourceVersion": str(self.version)}}
        return json.dumps(self.object).encode()

    @property
    def spec(self) -> Any:
        assert self.object is not None
        return self.object["spec"]

    def by_another(self, holder="other", **spec) -> None:
        """Somebody else writes."""
        self.store({"metadata": {"name": "lamina", "labels": {"app": "x"}}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": str(self.version), **spec}})  # fmt: skip


class Contender:
    """A contender whose time passes only by waiting."""

    def __init__(self, server, identity="me"):
        self.client = ScriptedClient(server)
        self.time = Instant()
        timing = TimeSource(self.time.clock, self.time.sleep, random.Random(1))
        self.leadership = LeaderElector(
            self.client, "kube-system", "lamina", identity, timing=timing, wall=lambda: int(self.time.now * 1e9)
        )
        self.changes: list[bool] = []

    async def step(self, times=1):
        for _ in range(times):
            await self.leadership._step(self.changes.append)

    @property
    def methods(self):
        return [request.method for request in self.client.asked]


@pytest.fixture
def server():
    return Leases()


@pytest.fixture
def me(server):
    return Contender(server)


# --------------------------------------------------------------------------------------------------------- acquiring


async def test_a_lease_that_does_not_exist_is_created(me, server):
    assert not me.leadership.may_act()
    await me.step()

    assert ([True], True, True) == (me.changes, me.leadership.may_act(), me.leadership.is_leader)
    assert {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "1970-01-01T00:16:40.000000Z",
        "renewTime": "1970-01-01T00:16:40.000000Z",
        "leaseTransitions": 0,
    } == server.spec


async def test_a_lease_that_was_released_is_taken_at_once(me, server):
    server.by_another("", leaseDurationSeconds=1, leaseTransitions=4)
    await me.step()

    assert ([True], 5, {"app": "x"}) == (
        me.changes,
        server.spec["leaseTransitions"],
        server.object["metadata"]["labels"],
    )


async def test_a_holder_that_is_silent_for_its_term_is_replaced(me, server):
    """What counts is how long we saw nothing new, not what the record says about time."""
    server.by_another(renewTime="2099-01-01T00:00:00.000000Z")
    begun = me.time.now
    while not me.changes:
        await me.step()

    assert 15.0 <= me.time.now - begun < 15.0 + 2 * 2.2 * 2
    assert ("me", 1) == (server.spec["holderIdentity"], server.spec["leaseTransitions"])


async def test_a_holder_that_renews_keeps_its_lease(me, server):
    server.by_another()
    for _ in range(50):
        await me.step()
        server.by_another()

    assert ([], "other", {"GET"}) == (me.changes, me.leadership.holder, set(me.methods))


async def test_the_term_of_a_holder_is_its_own(me, server):
    server.by_another(leaseDurationSeconds=60)
    begun = me.time.now
    while not me.changes:
        await me.step()

    assert me.time.now - begun >= 60


async def test_those_that_stand_by_do_not_come_all_at_once(me, server):
    """Between 2 and 4.4 s, as client-go has it."""
    server.by_another()
    await me.step(5)

    assert all(2.0 <= pause <= 4.4 for pause in me.time.slept)
    assert 5 == len(set(me.time.slept))


async def test_of_two_that_see_an_empty_lease_one_gets_it(server):
    first, second = Contender(server, "first"), Contender(server, "second")
    await asyncio.gather(first.step(), second.step())

    assert 1 == len(first.changes) + len(second.changes)


# ---------------------------------------------------------------------------------------------------------- renewing


async def test_a_leader_renews_every_two_seconds_with_one_request(me, server):
    await me.step(11)

    assert ["GET", "POST"] + ["PUT"] * 10 == me.methods
    assert ([2.0] * 11, [True]) == (me.time.slept, me.changes)
    assert ("1970-01-01T00:16:40.000000Z", "1970-01-01T00:17:00.000000Z", 0) == (
        server.spec["acquireTime"],
        server.spec["renewTime"],
        server.spec["leaseTransitions"],
    )


async def test_a_leader_that_cannot_renew_stops_before_others_start(me, server):
    """It acts for 10 s after the last renewal; others wait for 15 s."""
    await me.step()
    renewed = me.time.now - 2.0
    server.down = True
    while me.changes == [True]:
        assert me.leadership.may_act() == (me.time.now - renewed < 10.0)
        await me.step()

    assert [True, False] == me.changes
    assert not me.leadership.may_act()
    assert 10.0 <= me.time.now - renewed < 15.0


async def test_a_process_that_was_stopped_may_not_act_when_it_goes_on(me, server):
    """Nothing has run yet since it went on: the clock alone tells."""
    await me.step()
    assert me.leadership.may_act()
    me.time.now += 20.0
    assert not me.leadership.may_act()

    server.by_another()
    await me.step()
    assert ([True, False], False) == (me.changes, me.leadership.may_act())

    await me.step(3)
    assert ([True, False], "other") == (me.changes, me.leadership.holder)


async def test_a_process_that_was_stopped_leads_again_if_nobody_came(me, server):
    await me.step()
    me.time.now += 20.0
    await me.step(2)

    assert ([True, False, True], True, 0) == (me.changes, me.leadership.may_act(), server.spec["leaseTransitions"])
    assert (2, 1) == (me.leadership.gained, me.leadership.lost)


async def test_an_answer_that_was_long_on_its_way_counts_from_when_it_was_asked_for(me, server):
    def slow(request):
        me.time.now += 6.0
        return server(request)

    await me.step()
    me.client.answer = slow
    await me.step()  # asked for right away, answered after 6 s; then it waits for 2 s: 2 s are left

    assert me.leadership.may_act()
    me.time.now += 2.0
    assert not me.leadership.may_act()


async def test_a_leader_whose_lease_was_taken_stops_at_once(me, server):
    await me.step(3)
    server.by_another()
    await me.step()

    assert ([True, False], "other") == (me.changes, me.leadership.holder)


async def test_a_leader_whose_lease_was_touched_or_deleted_goes_on(me, server):
    await me.step(2)
    server.store(server.object | {"metadata": {"name": "lamina", "annotations": {"a": "b"}}})
    await me.step()
    server.object = None
    await me.step(2)

    assert ([True], {"GET", "POST", "PUT"}) == (me.changes, set(me.methods))


async def test_a_renewal_that_fails_once_is_tried_again_in_time(me, server):
    await me.step(2)
    server.down = True
    await me.step()
    server.down = False
    await me.step(3)

    assert ([True], 1) == (me.changes, me.leadership.failures)


async def test_clocks_may_differ(server):
    """The other's clock is an hour ahead; nobody believes its times."""
    me, other = Contender(server, "me"), Contender(server, "other")
    other.time.now += 3600.0
    await other.step()
    await me.step()

    assert ([], [True]) == (me.changes, other.changes)


# ---------------------------------------------------------------------------------------------------------- stopping


async def test_a_leader_that_stops_gives_its_lease_back(me, server):
    run = asyncio.create_task(me.leadership.run(me.changes.append))
    while not me.changes:
        await asyncio.sleep(0)
    run.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await run

    assert ([True, False], "", 1) == (me.changes, server.spec["holderIdentity"], server.spec["leaseDurationSeconds"])
    assert not me.leadership.may_act()


async def test_one_that_stands_by_gives_nothing_back(me, server):
    server.by_another()
    run = asyncio.create_task(me.leadership.run(me.changes.append))
    for _ in range(5):  # far less than it would have to wait for
        await asyncio.sleep(0)
    run.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await run

    assert ("other", []) == (server.spec["holderIdentity"], me.changes)


async def test_a_lease_that_another_took_is_not_given_back(me, server):
    await me.step()
    server.by_another()
    await me.leadership._release()

    assert "other" == server.spec["holderIdentity"]


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param({"lease": 10.0}, "need lease > renew", id="lease not longer than renew"),
        pytest.param({"retry": 9.0}, "need lease > renew", id="retry too long"),
        pytest.param({"retry": 0.0}, "need lease > renew", id="no retry"),
    ],
)
def test_terms_that_do_not_fit_together_are_refused(terms, expected):
    with pytest.raises(WiringError, match=expected):
        LeaseTimings(**terms)


def test_a_contender_needs_an_identity():
    with pytest.raises(WiringError, match="identity"):
        LeaderElector(ScriptedClient(), "ns", "name", "")


async def test_what_goes_wrong_is_logged_once(me, server, caplog):
    server.down = True
    await me.step(20)

    assert (20, 1) == (me.leadership.failures, len(caplog.records))
