"""The QoS engine follows pods and controllers of every kind."""

import pytest

from lamina.qos.life_cycle_facts import (
    ControllerGone,
    ControllerResized,
    PodCreated,
    PodDeleted,
    PodIsReady,
    PodIsTerminating,
    PodIsUnready,
    PodReserved,
    PodRuns,
    PodUnreserved,
    PodWasBound,
)
from lamina.qos.promise import ControllerKey, Promise, QosApproach, QosSettings, RunningFrom
from lamina.qos.qos_view import qos_view
from tests.unit.qos.qos_lives import Cluster, key, promised
from tests.work import steps

AGGREGATE, CONCURRENT, INDEPENDENT = QosApproach.AGGREGATE, QosApproach.CONCURRENT, QosApproach.INDEPENDENT


def test_a_pod_waits_binds_and_runs():
    cluster = Cluster()
    cluster.create(0, "a")
    cluster.bind(30, "a", took=2)

    assert cluster.times("web", 40) == (10, 0, 28, 2)
    assert cluster.of("web", 40).overhead == 2.0


@pytest.mark.parametrize(
    ("running_from", "expected"),
    [
        # Created 0, binding since 8, bound 10, running 15, ready 20, unready 30 to 34, now 40.
        pytest.param(RunningFrom.BINDING, (30, 0, 8, 2), id="from binding"),
        pytest.param(RunningFrom.RUNNING, (25, 0, 8, 7), id="from running"),
        pytest.param(RunningFrom.READY, (16, 4, 8, 12), id="from ready"),
    ],
)
def test_running_time_starts_where_the_settings_say(running_from, expected):
    cluster = Cluster(QosSettings(running_from=running_from))
    cluster.create(0, "a")
    cluster.bind(10, "a", took=2)
    cluster.tell(PodRuns(15, "a"), PodIsReady(20, "a"), PodIsUnready(30, "a"), PodIsReady(34, "a"))

    assert cluster.times("web", 40) == pytest.approx(expected)


def test_a_job_keeps_its_work_while_it_is_not_ready():
    cluster = Cluster(QosSettings(running_from=RunningFrom.READY))
    cluster.create(0, "a", promise=promised(0.5, AGGREGATE))
    cluster.bind(0, "a")
    cluster.tell(PodIsReady(0, "a"), PodIsUnready(10, "a"))

    assert cluster.times("web", 40) == (40, 0, 0, 0)


def test_a_preempted_pod_gives_its_slot_to_the_next_one():
    cluster = Cluster()
    cluster.create(0, "a", replicas=1)
    cluster.bind(0, "a")
    cluster.evict(60, "a")
    cluster.create(60, "b", replicas=1)

    assert cluster.times("web", 100) == (60, 0, 40, 0)
    assert [(one.pod, one.slot, one.times.effective) for one in cluster.finished] == [("a", 0, 60)]
    assert [view.name for view in qos_view(cluster.engine, 100).replicas] == ["web-0"]


def test_a_terminating_pod_runs_until_it_is_gone_and_no_longer_counts_as_a_replica():
    cluster = Cluster()
    cluster.create(0, "a", replicas=1)
    cluster.bind(0, "a")
    cluster.tell(PodIsTerminating(60, "a"))

    standing = cluster.of("web", 90)
    assert standing.times.effective == 90
    assert (standing.counts.running, standing.counts.pending) == (0, 0)


def test_replicas_that_run_together_count_only_together():
    # Two replicas: one runs from 0 to 100, the other from 20 to 80.
    cluster = Cluster()
    cluster.create(0, "a", "b", promise=promised(0.5, CONCURRENT), replicas=2)
    cluster.bind(0, "a")
    cluster.bind(20, "b")
    cluster.evict(80, "b")

    assert cluster.times("web", 100) == (120, 40, 20, 0)


def test_a_moment_that_becomes_known_late_changes_the_times_together():
    cluster = Cluster()
    cluster.create(0, "a", "b", promise=promised(0.5, CONCURRENT), replicas=2)
    cluster.bind(0, "a")
    cluster.evict(60, "a")
    cluster.tell(PodWasBound(20, "b"), now=70)

    # Both ran from 20 to 60.
    assert cluster.times("web", 100) == (80, 60, 20, 0)


def test_scaling_down_lets_fewer_replicas_be_enough():
    cluster = Cluster()
    cluster.create(0, "a", "b", promise=promised(0.5, CONCURRENT), replicas=2)
    cluster.bind(0, "a")
    cluster.tell(ControllerResized(50, key("web"), 1))
    cluster.evict(50, "b")

    assert cluster.times("web", 100)[:2] == (50, 50)


def test_scaling_up_adds_slots():
    cluster = Cluster()
    cluster.create(0, "a", replicas=1)
    cluster.create(10, "b", "c", replicas=3)

    assert [view.name for view in qos_view(cluster.engine, 20).replicas] == ["web-0", "web-1", "web-2"]


def test_the_pod_of_a_rolling_update_takes_over_slot_and_history():
    cluster = Cluster()
    independent = promised(0.9, INDEPENDENT)
    cluster.create(0, "old", promise=independent, replicas=1)
    cluster.bind(0, "old")
    cluster.create(100, "new", promise=independent, replicas=1)
    cluster.bind(110, "new")
    assert [view.name for view in qos_view(cluster.engine, 120).replicas] == ["web-0", "web-1"]

    cluster.evict(120, "old")

    assert [(view.name, view.pod) for view in qos_view(cluster.engine, 120).replicas] == [("web-0", "new")]
    # The old pod ran for 120 seconds; the new one waited for 10 and ran for 30.
    assert cluster.of_pod("new", 140).times.effective == 150
    assert cluster.of_pod("new", 140).times.waiting == 10


def test_independent_replicas_have_their_own_qos():
    cluster = Cluster()
    cluster.create(0, "a", "b", promise=promised(0.9, INDEPENDENT), replicas=2)
    cluster.bind(0, "a")
    cluster.bind(50, "b")

    assert cluster.of_pod("a", 100).qos == 1.0
    assert cluster.of_pod("b", 100).qos == 0.5
    assert cluster.of("web", 100).qos == 0.75


def test_a_failed_pod_that_still_exists_gives_its_slot_away():
    cluster = Cluster()
    cluster.create(0, "a", promise=promised(0.5, AGGREGATE), replicas=1)
    cluster.bind(0, "a")
    cluster.end(30, "a", succeeded=False)
    cluster.create(30, "b", promise=promised(0.5, AGGREGATE), replicas=1)
    cluster.bind(40, "b")

    assert cluster.times("web", 60) == (20, 30, 10, 0)
    assert [view.name for view in qos_view(cluster.engine, 60).replicas] == ["web-0"]


def test_the_work_of_a_succeeded_pod_counts_and_that_of_a_preempted_pod_is_lost():
    cluster = Cluster()
    cluster.create(0, "a", "b", promise=promised(0.5, AGGREGATE), replicas=2)
    cluster.bind(0, "a", "b")
    cluster.end(40, "a", succeeded=True)
    cluster.evict(50, "b")

    assert cluster.times("web", 60) == (40, 50, 0, 0)
    assert [one.succeeded for one in cluster.finished] == [True, False]
    assert qos_view(cluster.engine, 60).controllers[0].succeeded == 1


def test_the_run_of_a_job_is_lost_in_the_question_whether_to_preempt_it():
    cluster = Cluster()
    cluster.create(0, "a", "b", promise=promised(0.5, AGGREGATE), replicas=2)
    cluster.bind(0, "a")

    assert cluster.of_pod("a", 60).times.effective == 0
    assert cluster.of_pod("b", 60).times.effective == 60


def test_kube_system_is_ignored_and_goes_first():
    cluster = Cluster()
    cluster.create(0, "a")
    cluster.tell(PodCreated(0, "dns", "kube-system", "dns", key("dns"), Promise(), 1))

    assert len(cluster.engine) == 1
    assert cluster.order(["a", "dns"], 10) == ["dns", "a"]
    assert cluster.engine.precedes("dns", "a", 10)


def test_controllers_of_other_namespaces_are_different_ones():
    cluster = Cluster()
    for namespace in ("default", "team"):
        cluster.tell(
            PodCreated(
                0, f"{namespace}-pod", namespace, "web-0", ControllerKey(namespace, "StatefulSet", "web"), Promise()
            )
        )

    assert [view.name for view in qos_view(cluster.engine, 1).controllers] == ["team/web", "web"]


def test_replicas_that_need_each_other_do_not_contribute_until_all_have_a_place():
    cluster = Cluster()
    cluster.create(0, "a", "b", promise=promised(0.5, CONCURRENT), replicas=2)
    cluster.bind(0, "a")
    assert not cluster.engine.contributing("a")

    cluster.tell(PodReserved(10, "b"))
    assert cluster.engine.contributing("a")

    cluster.tell(PodUnreserved(20, "b"))
    assert not cluster.engine.contributing("a")


def test_a_pod_that_ran_before_it_was_seen_keeps_its_history():
    cluster = Cluster()
    cluster.tell(
        PodCreated(0, "a", "default", "a", key("web"), Promise(), 1), PodWasBound(20, "a"), PodRuns(25, "a"), now=1000
    )

    assert cluster.times("web", 1000) == (980, 0, 20, 0)


def test_a_time_after_the_observation_counts_as_the_observation():
    cluster = Cluster()
    cluster.create(0, "a")
    cluster.tell(PodWasBound(50, "a"), now=40)

    assert cluster.times("web", 60) == (20, 0, 40, 0)


def test_facts_about_unknown_pods_are_ignored():
    cluster = Cluster()
    cluster.bind(10, "a")
    cluster.delete(20, "a")

    assert len(cluster.engine) == 0
    assert cluster.engine.standing("a", 30) is None


class TestMemory:
    """What the engine forgets."""

    def test_a_controller_without_pods_is_forgotten_after_a_while(self):
        cluster = Cluster(QosSettings(retention=100))
        cluster.create(0, "a")
        cluster.delete(10, "a")
        cluster.create(109, "b", of="other")
        assert len(cluster.engine) == 2

        cluster.create(110, "c", of="other")
        assert len(cluster.engine) == 1

    def test_a_pod_that_returns_in_time_finds_the_history(self):
        cluster = Cluster(QosSettings(retention=100))
        cluster.create(0, "a")
        cluster.delete(10, "a")
        cluster.create(20, "b")

        assert cluster.times("web", 300)[2] == 290

    def test_a_deleted_controller_is_forgotten_with_its_last_pod(self):
        cluster = Cluster()
        cluster.create(0, "a")
        cluster.tell(ControllerGone(5, key("web")))
        assert len(cluster.engine) == 1

        cluster.delete(10, "a")
        assert len(cluster.engine) == 0

    def test_too_many_idle_controllers_leave_in_the_order_in_which_they_became_idle(self):
        cluster = Cluster(QosSettings(most_idle=3))
        for number in range(10):
            cluster.create(number, f"p{number}", of=f"c{number}")
        for number in range(10):
            cluster.delete(20 + number, f"p{number}")
        cluster.create(40, "last", of="last")

        names = [view.name for view in qos_view(cluster.engine, 40).controllers]
        assert names == ["c7", "c8", "c9", "last"]

    def test_a_thousand_incarnations_take_no_more_room_than_one(self):
        cluster = Cluster()
        independent = promised(0.9, INDEPENDENT)
        sizes = []
        for number in range(1000):
            cluster.create(number, f"p{number}", promise=independent, replicas=1)
            cluster.bind(number + 0.5, f"p{number}")
            cluster.evict(number + 0.75, f"p{number}")
            sizes.append(len(str(cluster.engine.snapshot())))

        assert max(sizes) < 2 * sizes[0]
        assert cluster.times("web", 1000)[0] == pytest.approx(250)


class TestOrder:
    """The order of waiting pods, and when it changes."""

    def test_below_the_margin_importance_decides_and_above_it_the_metric(self):
        cluster = Cluster(QosSettings(safety_margin=20))
        for name, slo, importance in (("low", 0.5, 0.5), ("high", 0.5, 1.0), ("safe", 0.5, 2.0)):
            cluster.create(0, name, of=name, promise=promised(slo, importance=importance), replicas=1)
        cluster.bind(0, "safe")
        cluster.evict(100, "safe")
        cluster.create(100, "safe-1", of="safe", promise=promised(0.5, importance=2.0), replicas=1)

        assert cluster.order(["safe-1", "low", "high"], 100) == ["high", "low", "safe-1"]

    def test_equal_pods_keep_the_order_of_arrival(self):
        cluster = Cluster()
        cluster.create(0, "a", "b", "c", replicas=3)

        assert cluster.order(["b", "c", "a"], 10) == ["b", "c", "a"]

    def test_the_next_flip_is_the_crossing_of_two_metrics(self):
        # Both broken: metrics -t - 2.4 (SLO 1) and 100/0.5 - t - 100 - 2.4: they never cross, they fall equally fast.
        cluster = Cluster()
        cluster.create(0, "a", of="a", promise=promised(0.5), replicas=2)
        cluster.create(0, "b", of="b", promise=promised(0.5), replicas=1)
        cluster.create(0, "a-2", of="a", promise=promised(0.5), replicas=2)
        # b is behind by 60 seconds, and a falls twice as fast, because two of its pods wait.
        cluster.tell(PodCreated(-60, "b-2", "default", "b-2", key("b"), promised(0.5), 1), now=0)
        cluster.delete(0, "b")

        order = cluster.order(["a", "b-2"], 0)
        flip = cluster.next_flip(order, 0)

        # -2t = -(60 + t) at t = 60
        assert order == ["b-2", "a"]
        assert flip == pytest.approx(60, abs=0.01)
        assert cluster.order(order, flip) == ["a", "b-2"]

    def test_the_next_flip_can_be_an_entry_into_the_danger_zone(self):
        cluster = Cluster(QosSettings(safety_margin=30))
        cluster.create(0, "poor", of="poor", promise=promised(0.5, importance=0.1), replicas=1)
        cluster.create(0, "rich", of="rich", promise=promised(0.5, importance=0.9), replicas=1)
        cluster.bind(0, "rich")
        cluster.evict(100, "rich")
        cluster.create(100, "rich-2", of="rich", promise=promised(0.5, importance=0.9), replicas=1)

        order = cluster.order(["poor", "rich-2"], 100)
        flip = cluster.next_flip(order, 100)

        # rich: (100 - 0.5 t) / 0.5 - 2.4 < 30 at t = 167.6
        assert order == ["poor", "rich-2"]
        assert flip == pytest.approx(167.6, abs=0.01)
        assert cluster.order(order, flip) == ["rich-2", "poor"]

    def test_controllers_that_keep_their_promise_anyway_never_change_places(self):
        cluster = Cluster()
        for name in ("a", "b"):
            cluster.create(0, f"{name}-0", f"{name}-1", of=name, promise=promised(0.5), replicas=2)
            cluster.bind(0, f"{name}-0")
        # Both had their SLO exactly; one more second of running lifts them above it, and half the replicas keep it.
        cluster.bind(10, "a-1", "b-1")
        cluster.evict(20, "a-1", "b-1")
        for name in ("a", "b"):
            cluster.create(20, f"{name}-2", of=name, promise=promised(0.5), replicas=2)

        assert cluster.of_pod("a-2", 30).metric == float("inf")
        assert cluster.next_flip(["a-2", "b-2"], 30) == float("inf")

    def test_pods_of_one_controller_never_change_places(self):
        cluster = Cluster()
        cluster.create(0, "a", "b", replicas=2)

        assert cluster.next_flip(["a", "b"], 5) == float("inf")

    def test_with_a_window_the_order_is_looked_at_when_the_window_moves(self):
        cluster = Cluster(QosSettings(window=320))
        cluster.create(0, "a", of="a", replicas=1)

        # The window moves every 10 seconds.
        assert cluster.next_flip(["a"], 5) == 10

    def test_a_fact_costs_the_same_however_many_pods_wait(self):
        def cost_of_binding(waiting: int) -> int:
            cluster = Cluster()
            for number in range(waiting):
                cluster.create(0, f"p{number}", of=f"c{number}", replicas=1)
            cluster.order(["p0"], 1)
            return steps(lambda: cluster.bind(2, "p1"))

        assert cost_of_binding(500) == cost_of_binding(5)


def test_a_window_forgets_an_old_outage():
    cluster = Cluster(QosSettings(window=320))
    cluster.create(0, "a", replicas=1)
    cluster.bind(100, "a")

    assert cluster.of("web", 200).qos == pytest.approx(0.5)
    # The window begins at 100 and is 320 seconds long.
    assert cluster.of("web", 420).qos == pytest.approx(1.0)


def test_a_window_counts_an_end_that_becomes_known_late_at_its_time():
    cluster = Cluster(QosSettings(window=320))
    cluster.create(0, "a", "b", replicas=2)
    cluster.bind(0, "a", "b")
    cluster.tell(PodDeleted(95, "b"), now=125)

    # The window begins at 120: a ran for 320 seconds in it, and b had ended.
    assert cluster.times("web", 440) == (320, 0, 0, 0)
