"""Laws of the QoS engine, on random lives of pods."""

import itertools
import math
from collections.abc import Callable

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from lamina.model.pod import PodUid
from lamina.qos.controller_snapshot import QosSnapshot
from lamina.qos.engine import QosEngine
from lamina.qos.life_cycle_facts import (
    ControllerResized,
    PodCreated,
    PodDeleted,
    PodEnded,
    PodIsReady,
    PodIsTerminating,
    PodIsUnready,
    PodReserved,
    PodRuns,
    PodUnreserved,
    PodWasBound,
    QosFact,
)
from lamina.qos.promise import ControllerKey, Promise, QosApproach, QosSettings, RunningFrom
from lamina.qos.qos_summary import QosSummary
from lamina.qos.qos_view import qos_view
from tests.property.qos_oracle import CLEAR, QosOracle

pytestmark = pytest.mark.slow

START = 1_800_000_000.0
MARGIN = 7.03
STEPS = ("create", "reserve", "unreserve", "bind", "run", "ready", "unready", "terminate", "succeed", "fail", "delete")
SHARED = (QosApproach.AVERAGE, QosApproach.AGGREGATE, QosApproach.CONCURRENT)

PLAIN: dict[str, Callable[[float, PodUid], QosFact]] = {
    "reserve": PodReserved,
    "unreserve": PodUnreserved,
    "run": PodRuns,
    "ready": PodIsReady,
    "unready": PodIsUnready,
    "terminate": PodIsTerminating,
}

Observed = list[tuple[float, QosFact]]


class Lives:
    """Turns random numbers into facts that can happen, in order."""

    def __init__(self, promises: list[tuple[Promise, int]]) -> None:
        self.promises = promises
        self.now = START
        self.alive: dict[PodUid, set[str]] = {}
        self.facts: Observed = []
        self.serial = itertools.count()

    def key(self, number: int) -> ControllerKey:
        return ControllerKey("default", "Deployment", f"c{number}")

    def step(self, wait: float, late: float, what: str, number: int) -> None:
        self.now += wait
        at = self.now - late
        index = number % len(self.promises)
        if what == "resize":
            promise, _ = self.promises[index]
            self.promises[index] = promise, 1 + number % 3
            fact: QosFact = ControllerResized(self.now, self.key(index), 1 + number % 3)
        elif what == "create" or not self.alive:
            promise, replicas = self.promises[index]
            uid = PodUid(f"p{next(self.serial)}")
            self.alive[uid] = set()
            fact = PodCreated(at, uid, "default", uid, self.key(index), promise, replicas)
        else:
            uid = list(self.alive)[number % len(self.alive)]
            fact = self.pod_fact(what, uid, at, late)
        self.facts.append((self.now, fact))

    def pod_fact(self, what: str, uid: PodUid, at: float, late: float) -> QosFact:
        match what:
            case "bind":
                return PodWasBound(at, uid, at - late - 0.25)
            case "succeed" | "fail":
                return PodEnded(at, uid, succeeded=what == "succeed")
            case "delete":
                del self.alive[uid]
                return PodDeleted(at, uid)
        return PLAIN[what](at, uid)


quarters = st.integers(0, 80).map(lambda number: number / 4)
slos = st.sampled_from([0.0, 0.25, 0.5, 0.8, 0.9, 1.0])


@st.composite
def promises(draw, approaches):
    return [
        (
            Promise(draw(slos), draw(st.sampled_from([0.5, 1.0, 2.0])), draw(st.sampled_from(approaches))),
            draw(st.integers(1, 3)),
        )
        for _ in range(draw(st.integers(1, 4)))
    ]


@st.composite
def lives(draw, approaches=SHARED, *, late=True):
    story = Lives(draw(promises(approaches)))
    steps = st.tuples(
        quarters,
        st.sampled_from([0.0, 0.0, 1.0, 5.5]) if late else st.just(0.0),
        st.sampled_from((*STEPS, "create", "bind", "run", "ready", "resize")),
        st.integers(0, 30),
    )
    for step in draw(st.lists(steps, min_size=1, max_size=40)):
        story.step(*step)
    return story


def fed(facts: Observed, settings: QosSettings, engine: QosEngine | None = None) -> QosEngine:
    engine = QosEngine(settings) if engine is None else engine
    for now, fact in facts:
        engine.feed(fact, now)
    return engine


def oracle(facts: Observed, running_from: RunningFrom) -> QosOracle:
    told = QosOracle(running_from, MARGIN)
    for now, fact in facts:
        told.feed(fact, now)
    return told


def settings(running_from: RunningFrom = RunningFrom.BINDING, window: float = 0.0) -> QosSettings:
    return QosSettings(safety_margin=MARGIN, running_from=running_from, window=window)


def waiting(engine: QosEngine, told: QosOracle) -> list[PodUid]:
    """The pods that wait: those that the queue of a scheduler holds."""
    return [
        uid
        for uid, pod in told.pods.items()
        if uid in engine and pod.state == "W" and pod.ended is None and not pod.terminating
    ]


modes = st.sampled_from(RunningFrom)


@given(lives(), modes, quarters)
def test_the_sums_of_a_controller_are_those_of_a_fresh_computation(story, running_from, later):
    engine, told = fed(story.facts, settings(running_from)), oracle(story.facts, running_from)
    now = story.now + later
    for key in told.promises:
        standing = engine.controller_standing(key, now)
        times = standing.times

        found = (times.effective, times.discarded, times.waiting, times.binding)
        assert found == pytest.approx(told.times(key, now), abs=CLEAR)


@given(lives((*SHARED, QosApproach.INDEPENDENT)), modes, quarters)
def test_the_times_of_a_controller_add_up_to_the_lifetimes_of_its_pods_and_qos_is_a_share(story, running_from, later):
    engine, told = fed(story.facts, settings(running_from)), oracle(story.facts, running_from)
    now = story.now + later
    for key in told.promises:
        standing = engine.controller_standing(key, now)
        lifetimes = sum((now if pod.ended is None else pod.ended) - pod.created for pod in told.of(key))

        assert standing.times.total == pytest.approx(lifetimes, abs=CLEAR)
        assert 0 <= standing.qos <= 1
    for uid, pod in told.pods.items():
        if uid in engine:
            lifetime = (now if pod.ended is None else pod.ended) - pod.created
            assert engine.pod_times(uid, now).total == pytest.approx(lifetime, abs=CLEAR)


@given(lives((*SHARED, QosApproach.INDEPENDENT)), modes, st.sampled_from([0.0, 16.0, 100.0]), st.integers(0, 40))
def test_a_restored_engine_answers_like_the_one_that_kept_running(story, running_from, window, cut):
    rules = settings(running_from, window)
    running = fed(story.facts[:cut], rules)
    data = msgspec.msgpack.encode(running.snapshot())
    restored = QosEngine(rules)
    restored.restore(msgspec.msgpack.decode(data, type=QosSnapshot))

    one, other = fed(story.facts[cut:], rules, running), fed(story.facts[cut:], rules, restored)

    assert qos_view(other, story.now + 3) == qos_view(one, story.now + 3)
    assert other.snapshot() == one.snapshot()


@given(lives(SHARED), modes, st.sampled_from([0.0, 16.0, 100.0]))
def test_a_recorded_history_gives_the_same_answers_again(story, running_from, window):
    rules = settings(running_from, window)
    recorded = msgspec.json.encode(story.facts)
    again = msgspec.json.decode(recorded, type=list[tuple[float, QosFact]])

    assert fed(again, rules).snapshot() == fed(story.facts, rules).snapshot()


@given(lives(), modes, quarters)
def test_the_order_of_waiting_pods_is_that_of_a_fresh_computation(story, running_from, later):
    engine, told = fed(story.facts, settings(running_from)), oracle(story.facts, running_from)
    now = story.now + later
    ordered = engine.order(waiting(engine, told), now)
    keys = [told.pods[uid].controller for uid in ordered]

    assert sorted(ordered) == sorted(waiting(engine, told))
    assert [pair for pair in itertools.pairwise(keys) if told.clearly_precedes(pair[1], pair[0], now)] == []
    for one, other in itertools.pairwise(ordered):
        assert not engine.precedes(other, one, now) or not told.clearly_precedes(
            told.pods[one].controller, told.pods[other].controller, now
        )


@st.composite
def queues(draw):
    """Two to five controllers: some replicas ran for a while and ended, some run, and one waits."""
    facts: Observed = []
    now = START + 100
    for index in range(draw(st.integers(2, 5))):
        promise = Promise(draw(slos), draw(st.sampled_from([0.5, 1.0])), draw(st.sampled_from(SHARED)))
        key, replicas = ControllerKey("default", "Deployment", f"c{index}"), draw(st.integers(1, 3))
        for number in range(draw(st.integers(0, 3))):
            uid, begin = f"c{index}-{number}", START + draw(quarters)
            facts.append((begin, PodCreated(begin, uid, "default", uid, key, promise, replicas)))
            facts.append((begin + 1, PodWasBound(begin + 1, uid, begin + 1)))
            if draw(st.booleans()):
                end = begin + draw(quarters) + 1
                facts.append((end, PodDeleted(end, uid)))
        uid, begin = f"c{index}-waits", now - draw(quarters)
        facts.append((begin, PodCreated(begin, uid, "default", uid, key, promise, replicas)))
    return sorted(facts, key=lambda observed: observed[0])


@given(queues(), quarters)
def test_the_order_holds_until_the_next_flip(facts, later):
    engine, told = fed(facts, settings()), oracle(facts, RunningFrom.BINDING)
    now = START + 100 + later
    ordered = engine.order([uid for uid in told.pods if uid.endswith("waits")], now)
    flip = engine.next_flip(ordered, now)
    keys = [told.pods[uid].controller for uid in ordered]

    assert flip > now
    if flip < now + 10_000:
        assert engine.order(ordered, flip) != ordered
    end = min(flip - 0.002, now + 1000)
    for t in (now, now + (end - now) / 2, end):
        swapped = [pair for pair in itertools.pairwise(keys) if told.clearly_precedes(pair[1], pair[0], max(t, now))]
        assert swapped == []


@given(lives((QosApproach.AVERAGE,)), st.sampled_from([16.0, 100.0]), quarters)
def test_a_window_forgets_what_was_before_it(story, window, later):
    engine, told = fed(story.facts, settings(window=window)), oracle(story.facts, RunningFrom.BINDING)
    now = story.now + later
    # The window starts at a multiple of 1/32 of its length, counted from the first observation.
    step = window / 32
    begin = story.facts[0][0] + (math.floor((now - story.facts[0][0]) / step) - 32) * step
    for key in told.promises:
        times = engine.controller_standing(key, now).times
        within = {
            state: sum(
                max(end - max(start, begin), 0.0)
                for pod in told.of(key)
                for each, start, end in pod.intervals(now)
                if each == state
            )
            for state in "EWB"
        }

        assert times.effective == pytest.approx(within["E"], abs=CLEAR)
        assert times.waiting == pytest.approx(within["W"], abs=CLEAR)
        assert times.binding == pytest.approx(within["B"], abs=CLEAR)
        assert 0 <= times.qos <= 1


@given(lives((*SHARED, QosApproach.INDEPENDENT), late=False), st.integers(0, 40), st.sampled_from([0, 2, 1000]))
def test_an_engine_that_adopts_a_summary_has_the_same_sums(story, cut, most_pods):
    """Facts about existing pods are fed again, as a restarted scheduler rebuilds them from the API."""
    rules = settings()
    running = fed(story.facts[:cut], rules)
    now = story.facts[:cut][-1][0] if cut else START
    summary = msgspec.json.decode(msgspec.json.encode(running.summary(now, 1000, most_pods)), type=QosSummary)
    restarted = QosEngine(rules)
    restarted.adopt(summary, now)
    for _, fact in story.facts[:cut]:
        if isinstance(fact, ControllerResized) or fact.uid in running:
            restarted.feed(fact, now)
    restarted.finish_adoption()

    for view in qos_view(running, now + 5).controllers:
        again = restarted.controller_standing(view.key, now + 5)
        assert again.times.total == pytest.approx(view.times.total, abs=CLEAR)
        assert again.qos == pytest.approx(view.qos, abs=CLEAR)
        assert again.counts == view.counts
    for replica in qos_view(running, now + 5).replicas:
        again = restarted.standing(replica.pod, now + 5)
        assert again.times.total == pytest.approx(replica.times.total, abs=CLEAR)
        assert again.metric == pytest.approx(replica.metric, abs=CLEAR)
