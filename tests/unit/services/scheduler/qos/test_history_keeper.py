"""When the history is read and written, and that the scheduler works without it, whatever is wrong with it."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import pytest

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.qos.engine import QosEngine
from lamina.qos.promise import QosApproach, QosSettings
from lamina.qos.qos_summary import QosSummary
from lamina.services.scheduler.qos.history_conversion import stored_history
from lamina.services.scheduler.qos.history_keeper import AFTER_REJECTION, BETWEEN_WRITES, READ_FOR, QosHistoryKeeper
from lamina.wire.custom_resources.qos_history import decode_qos_history, encode_qos_history
from tests.unit.qos.qos_lives import Cluster, promised
from tests.unit.services.fakes import LoopClock, leaping

PATH = "/apis/lamina.dev/v1alpha1/qoshistories"


class Store:
    """An API server with at most one QosHistory."""

    def __init__(self, body: bytes | None = None) -> None:
        self.body, self.version = body, 1
        self.log: list[str] = []
        self.delay = 0.0
        """Seconds until an answer."""
        self.problems: dict[str, Exception] = {}
        """What a verb fails with."""

    async def request(self, method: str, path: str, *, body: bytes | None = None, **_: object) -> bytes:
        now = asyncio.get_running_loop().time()
        self.log.append(f"{now - 1000:g} {method}")
        if self.delay:
            await asyncio.sleep(self.delay)
        if method in self.problems:
            raise self.problems[method]
        if method == "POST":
            assert (path, self.body) == (PATH, None)
        else:
            assert path == f"{PATH}/lamina-scheduler"
            if self.body is None:
                raise error(404)
        if body is not None:
            told = json.loads(body)["metadata"].get("resourceVersion", "")
            if method == "PUT" and told != str(self.version):
                raise error(409)
            self.body, self.version = body, self.version + 1
        found = json.loads(self.body or b"{}")
        found["metadata"] = {"name": "lamina-scheduler", "resourceVersion": str(self.version)}
        return json.dumps(found).encode()

    def other_writes(self, body: bytes) -> None:
        self.body, self.version = body, self.version + 1


class House:
    """A keeper, the engine whose history it keeps, and a store."""

    def __init__(self, store: Store | None = None) -> None:
        self.store = store or Store()
        self.cluster = Cluster(QosSettings())
        self.cluster.engine.origin = 0.0
        self.leads = self.synced = True
        self.adopted: list[QosSummary] = []
        self.wakes = 0
        self.keeper = QosHistoryKeeper(
            self.store,
            "lamina-scheduler",
            lambda: self.cluster.engine,
            adopt=self.adopt,
            synced=lambda: self.synced,
            may_act=lambda: self.leads,
            wake=self.awake,
            clock=LoopClock(),
        )

    def awake(self) -> None:
        self.wakes += 1

    def adopt(self, summary: QosSummary) -> None:
        self.adopted.append(summary)
        self.cluster.engine = QosEngine(QosSettings(), origin=0.0)
        self.cluster.engine.adopt(summary, asyncio.get_running_loop().time())

    async def pods(self, *names: str) -> None:
        """Create pods now."""
        self.cluster.create(asyncio.get_running_loop().time(), *names, promise=promised(0.5))

    async def story(self, *steps: Coroutine[Any, Any, None]) -> None:
        running = asyncio.create_task(self.keeper.run())
        for step in steps:
            await step
        running.cancel()


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a loop that skips waiting times, work in a thread would take longer than any time-out."""

    async def inline(function: Any, *arguments: Any) -> Any:
        return function(*arguments)

    monkeypatch.setattr(asyncio, "to_thread", inline)


def error(status: int, message: str = "no") -> ApiError:
    return ApiError("PUT qoshistories", status, "Reason", message)


def a_history(at: float = 900.0, name: str = "old") -> bytes:
    cluster = Cluster()
    cluster.create(100.0, name, of=name, promise=promised(0.5))
    cluster.delete(200.0, name)
    return encode_qos_history("lamina-scheduler", stored_history(cluster.engine.summary(at, 10))) or b""


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_changes_are_written_at_most_every_five_seconds():
    house = House()

    leaping(
        house.story(
            asyncio.sleep(1),
            *(step for name in "abcdefgh" for step in (house.pods(name), asyncio.sleep(1))),
            asyncio.sleep(20),
        )
    )

    # Read once; the first write at once, the next ones five seconds apart, the last with the last change.
    assert ["0 GET", "0.25 POST", "5.25 PUT", "10.25 PUT"] == house.store.log
    assert 8 == len(decode_qos_history(house.store.body or b"").controllers[0].pods)


def test_a_quiet_cluster_causes_no_writes():
    house = House()

    leaping(house.story(house.pods("a"), asyncio.sleep(600)))

    assert ["0 GET", "0.25 POST"] == house.store.log


def test_the_last_changes_are_written_at_the_end():
    house = House()

    async def stop() -> None:
        await house.pods("b")
        await house.keeper.finish(1.0)

    leaping(house.story(house.pods("a"), asyncio.sleep(1), stop()))

    assert ["0 GET", "0.25 POST", "1 PUT"] == house.store.log


def test_nothing_is_written_at_the_end_without_changes_or_without_the_lease():
    house = House()

    async def stop() -> None:
        await house.keeper.finish(1.0)
        await house.pods("b")
        house.leads = False
        await house.keeper.finish(1.0)

    leaping(house.story(house.pods("a"), asyncio.sleep(1), stop()))

    assert ["0 GET", "0.25 POST"] == house.store.log


def test_a_stored_history_is_adopted_before_pods_are_decided():
    house = House(Store(a_history()))

    async def check() -> None:
        assert house.keeper.ready

    assert not house.keeper.ready
    leaping(house.story(asyncio.sleep(0.1), check()))

    assert [900.0] == [summary.at for summary in house.adopted]
    assert 1 == len(house.cluster.engine)


def test_pods_wait_until_the_engine_has_adopted_the_history():
    """The summary is an event among others: the loop may take it later."""
    house = House(Store(a_history()))
    later: list[QosSummary] = []
    house.keeper._adopt = later.append

    async def check() -> None:
        assert not house.keeper.ready
        house.adopt(later[0])
        assert house.keeper.ready

    leaping(house.story(asyncio.sleep(0.1), check()))


def test_a_new_leader_adopts_what_the_last_one_wrote():
    house = House()
    house.leads = False

    async def take_over() -> None:
        house.store.other_writes(a_history(1005.0))
        house.leads = True
        assert not house.keeper.ready

    leaping(house.story(asyncio.sleep(10), take_over(), asyncio.sleep(1)))

    assert ["0 GET", "10 GET", "10.25 PUT"] == house.store.log
    assert [1005.0] == [summary.at for summary in house.adopted]
    assert house.keeper.ready


def test_a_leader_that_returns_does_not_adopt_its_own_history():
    house = House()

    async def lead(on: bool) -> None:
        house.leads = on

    leaping(
        house.story(house.pods("a"), asyncio.sleep(1), lead(False), asyncio.sleep(10), lead(True), asyncio.sleep(5))
    )

    assert [] == house.adopted
    assert ["0 GET", "0.25 POST", "11 GET", "11.25 PUT"] == house.store.log


def test_a_standby_writes_nothing():
    house = House()
    house.leads = False

    leaping(house.story(house.pods("a"), asyncio.sleep(60)))

    assert ["0 GET"] == house.store.log
    assert not house.keeper.ready


def test_a_leader_keeps_its_own_measurements_when_another_client_writes(caplog):
    house = House()

    async def intrude() -> None:
        house.store.other_writes(a_history(1001.0, "intruder"))
        await house.pods("b")

    leaping(house.story(house.pods("a"), asyncio.sleep(1), intrude(), asyncio.sleep(30)))

    assert ["0 GET", "0.25 POST", "5.25 PUT", "10.25 GET", "10.5 PUT"] == house.store.log
    assert [] == house.adopted
    assert ["web"] == [one.name for one in decode_qos_history(house.store.body or b"").controllers]
    assert ["do two schedulers use the same lease?"] == [line.rpartition(": ")[2] for line in told(caplog)]


@pytest.mark.parametrize(
    ("verb", "status", "hint"),
    [
        pytest.param("GET", 403, "deploy/rbac/optional/scheduler-qos.yaml", id="reading is forbidden"),
        pytest.param("POST", 403, "deploy/rbac/optional/scheduler-qos.yaml", id="writing is forbidden"),
        pytest.param("POST", 404, "deploy/crds/qoshistories.yaml", id="the custom resource is missing"),
        pytest.param("POST", 422, "", id="the schema is another one"),
    ],
)
def test_without_permission_or_definition_pods_are_decided_and_one_line_says_so(caplog, verb, status, hint):
    house = House()
    house.store.problems[verb] = error(status)

    leaping(house.story(house.pods("a"), asyncio.sleep(1), house.pods("b"), asyncio.sleep(10 * AFTER_REJECTION)))

    assert house.keeper.ready
    assert 1 == len(told(caplog))
    assert "a restart forgets deleted pods" in told(caplog)[0]
    assert hint in told(caplog)[0]
    # Rejections that need an operator are not repeated every five seconds.
    assert len(house.store.log) <= 2 * 10 + 4


def test_writing_goes_on_when_the_permission_is_granted(caplog):
    house = House()
    house.store.problems["POST"] = error(403)

    async def grant() -> None:
        house.store.problems.clear()

    leaping(house.story(house.pods("a"), asyncio.sleep(10), grant(), asyncio.sleep(AFTER_REJECTION)))

    assert house.store.body is not None
    assert 1 == len(told(caplog))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{}", id="empty"),
        pytest.param(b'{"spec": {"observedAt": "soon"}}', id="no time"),
        pytest.param(a_history().replace(b'"slo":0.5', b'"slo":50'), id="impossible SLO"),
        pytest.param(a_history().replace(b'"waiting":100.0', b'"waiting":-100.0'), id="negative time"),
    ],
)
def test_a_damaged_history_is_ignored_and_replaced(caplog, body):
    house = House(Store(body))

    leaping(house.story(house.pods("a"), asyncio.sleep(1)))

    assert [] == house.adopted
    assert house.keeper.ready
    assert 1 == len(told(caplog))
    assert ["web"] == [one.name for one in decode_qos_history(house.store.body or b"").controllers]


def test_a_server_that_does_not_answer_is_waited_for_and_then_done_without(caplog):
    house = House()
    house.store.problems["GET"] = UnreachableError("GET qoshistories", "no answer")

    async def check() -> None:
        assert not house.keeper.ready

    leaping(house.story(asyncio.sleep(READ_FOR - 1), check(), asyncio.sleep(5)))

    assert house.keeper.ready
    assert 1 == len(told(caplog))


def test_a_lost_answer_is_followed_by_a_read():
    """The object may have been written."""
    house = House()
    house.store.problems["POST"] = UnreachableError("POST qoshistories", "reset")

    async def repair() -> None:
        house.store.problems.clear()

    leaping(house.story(house.pods("a"), asyncio.sleep(1), repair(), asyncio.sleep(BETWEEN_WRITES)))

    assert ["0 GET", "0.25 POST", "5.25 GET", "5.5 POST"] == house.store.log


def test_a_history_that_is_too_large_loses_its_pods_first(monkeypatch):
    house = House()
    monkeypatch.setattr("lamina.wire.custom_resources.qos_history.SPEC_LIMIT", 20_000)

    async def many() -> None:
        await house.pods(*(f"pod-{number}" for number in range(2000)))

    leaping(house.story(many(), asyncio.sleep(1)))

    (web,) = decode_qos_history(house.store.body or b"").controllers
    assert 0 < len(web.pods) < 2000
    assert len(house.store.body or b"") < 21_000


@pytest.mark.parametrize(
    ("limit", "left"),
    [pytest.param(20_000, range(50, 200), id="fewer slots"), pytest.param(1_000, [0], id="no slots")],
)
def test_slots_of_replicas_are_left_out_when_that_is_not_enough(monkeypatch, limit, left):
    house = House()
    monkeypatch.setattr("lamina.wire.custom_resources.qos_history.SPEC_LIMIT", limit)

    async def many() -> None:
        names = [f"pod-{number}" for number in range(2000)]
        house.cluster.create(1000.0, *names, promise=promised(0.5, QosApproach.INDEPENDENT), replicas=2000)

    leaping(house.story(many(), asyncio.sleep(1)))

    (web,) = decode_qos_history(house.store.body or b"").controllers
    assert len(web.slots) in left


def test_a_history_that_cannot_get_any_smaller_is_not_written_and_tried_again_later(monkeypatch, caplog):
    house = House()
    monkeypatch.setattr("lamina.wire.custom_resources.qos_history.SPEC_LIMIT", 10)

    async def stop() -> None:
        await house.keeper.finish(1.0)

    leaping(house.story(house.pods("a"), asyncio.sleep(3 * AFTER_REJECTION), stop()))

    assert ["0 GET"] == house.store.log
    assert 1 == len(told(caplog))
    assert "too large" in told(caplog)[0]


def test_the_last_write_waits_for_the_one_before(caplog):
    house = House()
    house.store.delay = 0.5

    async def stop() -> None:
        await house.pods("b")
        await house.keeper.finish(2.0)

    # The first write begins after 0.75 s; "b" comes during it.
    leaping(house.story(house.pods("a"), asyncio.sleep(1), stop()))

    assert ["0 GET", "0.75 POST", "1.25 PUT"] == house.store.log
    assert [] == told(caplog)
    assert 2 == len(decode_qos_history(house.store.body or b"").controllers[0].pods)
