"""
Laws of measured use: what is reported is the integral of what nodes used, and measuring changes nothing else.

The naive model asks every node after every instant what is in use, keeps all answers and adds them up in fractions.
"""

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model.events import Event, NodeSeen, PodGone, PodSeen, TimePassed, UsageReported
from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.model.pod import PodUid
from lamina.model.resources import CPU, MEMORY, amounts
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.contract.commands import Command
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.state.view import everything
from lamina.simulator.cluster import Delays, UsageSpec, VirtualCluster, VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import LifecycleStage, PodLifecycle
from lamina.simulator.decider import LoopDecider
from lamina.simulator.engine import Environment
from lamina.simulator.run import simulate, summary
from lamina.simulator.workloads import Scenario
from lamina.testing import a_node, a_pod, an_image
from lamina.trace.trace_records import TraceRecord
from lamina.trace.trace_writer import ENCODER, MemoryTrace
from tests.property.simulated_scenarios import REGISTRY, scenarios, wild

FEWER = settings(max_examples=settings().max_examples * 2 // 5)

TOOL = an_image("tool:1", {"tool": 50})
NODES = ("n1", "n2", "n3")
GI = 2**30

TIMES = st.integers(0, 240).map(lambda quarters: quarters / 4)
SPECS = st.builds(
    lambda every, more: UsageSpec(every=every, window=every + more),
    st.sampled_from([1.0, 7.0, 10.0, 33.3]),
    st.sampled_from([0.0, 5.0, 60.0]),
)
USES = st.builds(
    lambda cpu, memory: amounts({"cpu": f"{cpu}m", "memory": memory}), st.integers(0, 6000), st.integers(0, 3 * GI)
)
LIVES = st.builds(
    PodLifecycle,
    seconds=st.none() | st.integers(0, 60).map(float),
    stages=st.lists(st.builds(LifecycleStage, st.sampled_from([0.25, 1.0, 7.5, 30.0]), USES), max_size=4).map(tuple),
    failures=st.sampled_from([0, 1, -1]),
    restart=st.sampled_from(["Never", "OnFailure"]),
    deadline=st.integers(1, 90).map(float),
    grace=st.sampled_from([0.0, 5.0]),
    stopping=st.sampled_from([0.0, 2.0, 20.0]),
)
PODS = st.lists(st.tuples(TIMES, st.sampled_from(NODES), LIVES, st.integers(0, 3)), max_size=12)
HAPPENINGS = st.lists(
    st.tuples(TIMES, st.sampled_from(["drop", "fail", "recover", "drain"]), st.sampled_from(NODES)), max_size=4
)


class Story:
    """A cluster of three nodes, one of which joins late; what was told of their use, and what they used."""

    def __init__(self, spec: UsageSpec, delay: float) -> None:
        self.env = Environment()
        self.cluster = VirtualCluster(
            self.env, [TOOL], Delays(report=delay, notice=5.0, evict_after=10.0), self, usage=spec
        )
        self.told: list[tuple[float, UsageReported]] = []
        self.used: dict[str, list[tuple[float, dict[str, int]]]] = {}
        for name in NODES:
            self.env.at(20.0 if name == "n3" else 0.0, self._join, name, priority=-1)

    def note(self, record: TraceRecord) -> None:
        pass

    def publish(self, event: Event) -> None:
        if isinstance(event, UsageReported):
            self.told.append((self.env.now, event))

    def _join(self, name: str) -> None:
        allocatable = amounts({"cpu": 4, "memory": "8Gi", "pods": 10})
        self.cluster.join(VirtualNodeSpec(name=name, allocatable=allocatable, bandwidth=100.0, holds=(TOOL,)))

    def place(self, number: int, node: str, life: PodLifecycle, cpu: int) -> None:
        self.cluster.submit(a_pod(f"p{number}", cpu, image="tool:1"), life)
        self.cluster.bind(PodUid(f"p{number}"), node)

    def run(self) -> None:
        while self.env.peek() < math.inf:
            self.env.step()
            if self.env.peek() > self.env.now:
                for name, kubelet in self.cluster.kubelets.items():
                    self.used.setdefault(name, []).append((self.env.now, kubelet.node.usage(self.env.now)))

    def spans(self, node: str, since: float, until: float) -> list[tuple[Fraction, dict[str, int]]]:
        """For how long what was in use."""
        curve = self.used[node]
        ends = [at for at, _ in curve[1:]] + [max(until, curve[-1][0])]
        return [
            (Fraction(min(end, until)) - Fraction(max(at, since)), use)
            for (at, use), end in zip(curve, ends, strict=True)
            if max(at, since) < min(end, until)
        ]


def load(spans: Sequence[tuple[Fraction, dict[str, int]]], resource: str, most: float) -> ResourceUsage:
    whole = sum(seconds for seconds, _ in spans)
    amounts_of = [(seconds, min(use.get(resource, 0), most)) for seconds, use in spans]
    mean = sum(seconds * Fraction(amount) for seconds, amount in amounts_of) / whole
    variance = sum(seconds * (Fraction(amount) - mean) ** 2 for seconds, amount in amounts_of) / whole
    return ResourceUsage(float(mean), math.sqrt(variance))


@given(SPECS, st.sampled_from([0.0, 1.0, 50.0]), PODS, HAPPENINGS)
def test_what_is_reported_is_the_integral_of_what_was_used(spec, delay, pods, happenings):
    story = Story(spec, delay)
    for number, (at, node, life, cpu) in enumerate(pods):
        story.env.at(at, story.place, number, node, life, cpu)
    for at, what, node in happenings:
        story.env.at(at, getattr(story.cluster, what), node)
    story.run()

    for when, event in story.told:
        for usage in event.usages:
            spans = story.spans(usage.node, usage.since, usage.until)
            joined = 20.0 if usage.node == "n3" else 0.0
            assert (when - delay, max(when - delay - spec.window, joined)) == pytest.approx((usage.until, usage.since))
            assert spec.every + delay == usage.renews_within
            for measured, resource, most in ((usage.cpu, CPU, 4000), (usage.memory, MEMORY, math.inf)):
                expected = load(spans, resource, most)
                assert pytest.approx(expected.mean, rel=1e-9, abs=1e-9) == measured.mean
                assert pytest.approx(expected.deviation, rel=1e-6, abs=1e-3) == measured.deviation
    crowded = sum(
        seconds
        for node in story.used
        for seconds, use in story.spans(node, 0.0, story.env.now)
        if use.get(CPU, 0) > 3600 or use.get(MEMORY, 0) > 0.9 * 8 * GI
    )
    assert story.cluster.usage_sampler is not None
    assert pytest.approx(float(crowded), abs=1e-6) == story.cluster.usage_sampler.overloaded_seconds(story.env.now)


@given(SPECS, PODS)
def test_a_cluster_in_which_nothing_more_happens_is_told_of_as_it_stays(spec, pods):
    """Whatever came before, the last report knows only what goes on: the window lies behind the last change."""
    story = Story(spec, 1.0)
    for number, (at, node, life, cpu) in enumerate(pods):
        story.env.at(at, story.place, number, node, life, cpu)
    story.run()

    last = story.told[-1][1].usages
    assert [(min(story.used[node][-1][1].get(CPU, 0), 4000), 0.0) for node in NODES] == [
        (usage.cpu.mean, usage.cpu.deviation) for usage in last
    ]


AGES = st.integers(0, 100)
STAYS = st.tuples(st.integers(0, 2000), AGES, st.none() | AGES, st.none() | AGES).map(
    # What it asks for, and when it comes, begins to run and leaves, as far as it does.
    lambda stay: (stay[0], *sorted(stay[1:3], key=lambda at: 101 if at is None else at), stay[3])
)


@given(st.lists(STAYS, max_size=6), st.integers(0, 60), st.integers(1, 60), st.integers(0, 5000), st.integers(0, 100))
def test_a_measurement_is_corrected_by_what_each_pod_has_to_do_with_its_window(stays, since, length, mean, before):
    """Pods are told of as things happen, and the node was measured before; the naive model has all of it at hand."""
    happened: list[tuple[int, int, Event]] = [
        (before, 0, UsageReported((NodeUsage("n1", ResourceUsage(1.0), None, -1.0, 0.0),))),
    ]
    coming = stayed = gone = Fraction(0)

    def part(at: int) -> Fraction:
        return min(max(Fraction(at - since, length), Fraction(0)), Fraction(1))

    for number, (cpu, came, began, left) in enumerate(stays):
        pod = a_pod(f"p{number}", f"{cpu}m", on="n1")
        left = left if left is None or left >= came else came
        if began is not None and left is not None and began > left:
            began = None
        happened.append((came, 1, PodSeen(pod)))
        if began is not None:
            happened.append((began, 2, PodSeen(msgspec.structs.replace(pod, started=True, started_at=float(began)))))
        if left is not None:
            happened.append((left, 3, PodGone(pod.uid)))
        missed = Fraction(1) if began is None else part(began)
        if left is None:
            coming, stayed = coming + cpu * missed, stayed + cpu * (1 - missed)
        elif began is not None and left >= before:
            # Who left before the node was first measured is not known of.
            gone += cpu * (part(left) - missed)
    loop = Loop(lambda _: {}, lambda _: 0)
    loop.take(NodeSeen(a_node("n1")))
    for at, _, event in sorted(happened, key=lambda one: one[:2]):
        loop.take(TimePassed(float(at)), event)
    usage = NodeUsage("n1", ResourceUsage(float(mean)), None, float(since), float(since + length))
    loop.take(TimePassed(200.0), UsageReported((usage,)))

    share = min(Fraction(mean) / (gone + stayed), Fraction(1)) if gone else Fraction(0)
    told = loop.cluster.usage.of(everything(loop.cluster.columns), CPU).mean.item(0)
    assert pytest.approx(float(mean - gone * share + coming), abs=1e-6) == told
    assert told >= float(coming) - 1e-6


class Listening(LoopDecider):
    """A loop that also writes down what it was told of use; a *deaf* one hears when it was told, and not what."""

    def __init__(self, loop: Loop, *, deaf: bool) -> None:
        super().__init__(loop)
        self.heard: list[UsageReported] = []
        self._deaf = deaf
        self.feed = self._listen

    def _listen(self, *happened: Event) -> list[Command]:
        self.heard += [event for event in happened if isinstance(event, UsageReported)]
        if self._deaf:
            happened = tuple(UsageReported(()) if isinstance(event, UsageReported) else event for event in happened)
        return self._loop.feed(*happened)


def run(
    scenario: Scenario, profile: str, seed: int, *, deaf: bool = False
) -> tuple[list[bytes], list[UsageReported], dict[str, Any]]:
    trace = MemoryTrace()
    decider = Listening(Loop(named(profile, REGISTRY).profiles, random.Random(seed).randrange), deaf=deaf)
    result = simulate(scenario.under(profile), seed=seed, trace=trace, decider=decider)
    return [ENCODER.encode(one) for one in trace.records], decider.heard, summary(result)


UNMEASURED = st.sampled_from(["kube-default", "lamina-balanced"])


@FEWER
@given(scenarios() | wild(), SPECS, UNMEASURED, st.integers(0, 3))
def test_the_same_seed_gives_the_same_reports_and_the_same_trace(scenario, spec, profile, seed):
    """And who does not look at use decides the same, whatever was measured."""
    measured = msgspec.structs.replace(scenario, usage=spec)
    first, second, deaf = (run(measured, profile, seed, deaf=deaf) for deaf in (False, False, True))

    assert first == second
    assert first == deaf


@FEWER
@given(scenarios() | wild(), UNMEASURED, st.integers(0, 3))
def test_nobody_hears_of_use_where_nobody_measures(scenario, profile, seed):
    _, heard, figures = run(scenario, profile, seed)

    assert [] == heard
    assert "overload_seconds" not in figures
