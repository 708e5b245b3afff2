"""What a restarted engine knows from a summary: pods that are gone, pods that went meanwhile, and exact times."""

import msgspec
import pytest

from lamina.qos.engine import QosEngine
from lamina.qos.life_cycle_facts import PodCreated, PodEnded, PodIsReady, PodWasBound
from lamina.qos.promise import ControllerKey, Promise, QosApproach, QosSettings
from lamina.qos.qos_summary import QosSummary
from lamina.qos.qos_view import qos_view
from tests.unit.qos.qos_lives import Cluster, key, promised

AVERAGE = promised(0.8)
SHARED = (QosApproach.AVERAGE, QosApproach.CONCURRENT, QosApproach.AGGREGATE)


def restarted(before: Cluster, at: float, now: float, *facts: object, most_pods: int = 100) -> Cluster:
    """An engine that adopts at *now* the summary of *at*, and then gets *facts* about existing pods."""
    written = msgspec.json.decode(msgspec.json.encode(before.engine.summary(at, 100, most_pods)), type=QosSummary)
    after = Cluster()
    after.engine.adopt(written, now)
    after.tell(*facts, now=now)
    after.engine.finish_adoption()
    return after


def created(at: float, pod: str, promise: Promise = AVERAGE, replicas: int = 1) -> PodCreated:
    return PodCreated(at, pod, "default", pod, key("web"), promise, replicas)


@pytest.mark.parametrize("approach", SHARED)
def test_a_pod_that_ended_after_the_summary_ends_when_its_successor_is_created(approach):
    promise = promised(0.8, approach)
    before = Cluster()
    before.create(0, "a", promise=promise, replicas=1)
    before.bind(10, "a")

    # Written at 100. The pod is evicted at 103, its successor is created, and the scheduler is killed before it writes.
    after = restarted(before, 100, 110, created(103, "b", promise))
    before.evict(103, "a")
    before.create(103, "b", promise=promise, replicas=1)

    assert before.times("web", 110) == pytest.approx(after.times("web", 110))
    assert before.of("web", 110).counts == after.of("web", 110).counts


def test_a_pod_without_a_successor_ended_when_the_engine_restarted():
    before = Cluster()
    before.create(0, "a", promise=AVERAGE)
    before.bind(10, "a")

    after = restarted(before, 100, 104)

    assert (94, 0, 10, 0) == after.times("web", 110)


def test_a_pod_that_had_ended_counts_as_the_summary_says():
    work = promised(0.8, QosApproach.AGGREGATE)
    before = Cluster()
    before.create(0, "done", "broken", promise=work, replicas=2)
    before.bind(10, "done", "broken")
    before.end(50, "done", succeeded=True)
    before.end(60, "broken", succeeded=False)

    after = restarted(before, 100, 200)

    assert (40, 50, 20, 0) == after.times("web", 200)
    assert [1] == [one.succeeded for one in qos_view(after.engine, 200).controllers]


def test_a_pod_that_is_gone_without_being_in_the_summary_is_lost_and_breaks_nothing():
    before = Cluster()
    before.create(0, "a", "b", promise=AVERAGE, replicas=2)
    before.bind(10, "a", "b")

    after = restarted(before, 100, 110, created(0, "b", replicas=2), PodWasBound(10, "b"), most_pods=0)

    assert (100, 0, 10, 0) == after.times("web", 110)


def test_the_successor_takes_the_slot_and_the_history_of_an_independent_replica():
    bare = promised(0.5, QosApproach.INDEPENDENT)
    before = Cluster()
    before.create(0, "a", "b", promise=bare, replicas=2)
    before.bind(10, "a", "b")

    after = restarted(before, 100, 110, created(0, "b", bare, 2), PodWasBound(10, "b"), created(104, "c", bare, 2))
    before.evict(104, "a")
    before.create(104, "c", promise=bare, replicas=2)

    for pod in "bc":
        assert before.of_pod(pod, 120).times.amounts == pytest.approx(after.of_pod(pod, 120).times.amounts)
    assert 2 == len(qos_view(after.engine, 120).replicas)


def test_a_summary_knows_the_times_of_an_existing_pod_more_exactly_than_its_object():
    """The API states whole seconds, and not when the binding began."""
    before = Cluster()
    before.create(0, "a", promise=AVERAGE)
    before.bind(10.75, "a", took=0.5)

    after = restarted(before, 100, 110, created(0, "a"), PodWasBound(10.0, "a"), PodIsReady(11.0, "a"))

    assert (99.25, 0, 10.25, 0.5) == pytest.approx(after.times("web", 110))


def test_a_pod_that_ended_meanwhile_keeps_the_times_of_its_object():
    before = Cluster()
    before.create(0, "a", promise=AVERAGE)
    before.bind(10.5, "a")

    after = restarted(before, 100, 110, created(0, "a"), PodWasBound(10.0, "a"), PodEnded(105.0, "a", succeeded=True))

    assert (94.5, 0, 10.5, 0) == pytest.approx(after.times("web", 110))


def test_views_and_summaries_observe_nothing():
    """A page that is asked a moment ahead of the loop must not change how the loop dates the next fact."""
    engine = QosEngine(QosSettings(), origin=0.0)
    engine.feed(PodCreated(0.0, "a", "default", "a", ControllerKey("default", "Pod", "a"), AVERAGE), 0.0)

    assert 50.0 == qos_view(engine, 50.0).controllers[0].times.waiting
    engine.summary(60.0, 10)
    engine.feed(PodWasBound(20.0, "a"), 10.0)

    assert 10.0 == qos_view(engine, 10.0).controllers[0].times.waiting


def test_a_view_lists_at_most_so_many_controllers_and_replicas_and_counts_the_others():
    web = Cluster()
    for number in range(5):
        web.create(0, f"{number}-a", f"{number}-b", of=f"web{number}", promise=AVERAGE)

    view = qos_view(web.engine, 10, most=3)

    assert ["web0", "web1", "web2"] == [one.name for one in view.controllers]
    assert ["web0-0", "web0-1", "web1-0"] == [one.name for one in view.replicas]
    # Two controllers and seven replicas are left out.
    assert 9 == view.omitted


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        pytest.param(QosSettings(most_idle=1), ["busy", "late"], id="few controllers without pods"),
        pytest.param(QosSettings(retention=0.0), ["busy"], id="none"),
        pytest.param(QosSettings(), ["busy", "early", "late"], id="all"),
    ],
)
def test_after_a_restart_those_without_pods_are_forgotten_in_the_order_in_which_they_lost_them(settings, left):
    before = Cluster()
    for at, name in enumerate(("early", "late", "busy")):
        before.create(0, name, of=name, promise=AVERAGE)
        if name != "busy":
            before.delete(10 + at, name)
    before.create(0, "gone", of="busy", promise=AVERAGE)
    before.delete(20, "gone")
    after = Cluster(settings)
    after.engine.adopt(before.engine.summary(100, 10), 110)
    after.tell(PodCreated(0, "busy", "default", "busy", key("busy"), AVERAGE), now=110)
    after.engine.finish_adoption()

    assert before.times("busy", 111) == after.times("busy", 111)
    after.engine.feed(PodWasBound(112, "busy"), 112)

    assert left == [one.name for one in qos_view(after.engine, 112).controllers]
