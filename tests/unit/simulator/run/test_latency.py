"""What deciding costs: read from text, charged to attempts, and felt by a run that goes on meanwhile."""

import random
from collections.abc import Iterator, Sequence

import pytest

from lamina.model.decision import Decision
from lamina.model.events import Event
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.contract.commands import Bind, Command, ReportUnschedulable, WakeAt
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.cluster.lag import lag_sampler
from lamina.simulator.run import FREE, simulate, summary
from lamina.simulator.run.latency import DecisionTimer, Latency, measured, measured_by, modelled, read_latency
from lamina.simulator.workloads import ScenarioEvent
from lamina.testing import a_pod
from lamina.trace import trace_records
from lamina.trace.trace_writer import MemoryTrace
from tests.unit.simulator.test_run import a_node_spec, a_scenario, arriving, log


def ticking(*steps: float) -> Iterator[float]:
    """A clock that shows these times, one at each look."""
    return iter(steps)


class Scripted:
    """A decider that answers what it was told to answer."""

    names = ("default-scheduler",)
    trying = False
    asked_until = None

    def __init__(self, answer: Sequence[Command], attempts: int) -> None:
        self.answer, self.attempts = answer, attempts

    def feed(self, *happened: Event) -> Sequence[Command]:
        return self.answer


def bind(name: str) -> Bind:
    return Bind(a_pod(name), "n1")


def pending(name: str) -> ReportUnschedulable:
    decision = Decision(
        pod=name, uid=name, at=0.0, attempt=1, profile="x", outcome="unschedulable", nodes=0, feasible=0
    )
    return ReportUnschedulable(a_pod(name), decision)


# --------------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("free", "free", "free"),
        ("measured", "measured", "measured"),
        ("5ms", "modelled", "0.005s"),
        ("1m30s", "modelled", "90s"),
        ("0", "modelled", "0s"),
    ],
)
def test_a_latency_is_written_as_a_word_or_a_duration(text, kind, name):
    latency = read_latency(text, lambda: 0.0)

    assert (kind, name) == (latency.kind, latency.name)


@pytest.mark.parametrize("text", ["fre", "", "5 ms", "-1s", "nan", "ten", "1e99"])
def test_anything_else_is_refused_in_words(text):
    with pytest.raises(ValueError, match="or write free or measured"):
        read_latency(text, lambda: 0.0)


def test_a_lag_that_varies_is_named_by_its_ends():
    assert "0.001s to 0.2s" == modelled((0.05, 0.001, 0.2)).name


# -------------------------------------------------------------------------------------------------------------- charging


@pytest.mark.parametrize(
    ("answer", "attempts", "spans", "seconds"),
    [
        pytest.param([bind("a"), bind("b")], 2, [(0.0, 2.0), (2.0, 4.0)], 4.0, id="one after the other"),
        pytest.param([bind("a"), pending("b")], 2, [(0.0, 2.0), (2.0, 4.0)], 4.0, id="a refusal costs as much"),
        pytest.param([pending("a"), WakeAt(9.0)], 1, [(0.0, 2.0), (2.0, 2.0)], 2.0, id="other commands cost nothing"),
        pytest.param([bind("a")], 3, [(0.0, 2.0)], 6.0, id="attempts that are not told of cost as well"),
        pytest.param([], 0, [], 0.0, id="nothing was tried"),
    ],
)
def test_each_attempt_takes_its_time(answer, attempts, spans, seconds):
    thought = DecisionTimer(Scripted(answer, attempts), modelled(2.0), lag_sampler(0)).feed([])

    assert (spans, seconds) == ([(began, done) for began, done, _ in thought.steps], thought.seconds)
    assert answer == [command for _, _, command in thought.steps]


def test_a_lag_that_varies_is_drawn_by_seed_and_pod():
    answer = [bind(f"p{number}") for number in range(20)]
    values = (1.0, 2.0, 4.0)

    def spans(seed: int, shuffled: bool = False) -> dict[str, float]:
        order = random.Random(5).sample(answer, len(answer)) if shuffled else answer
        thought = DecisionTimer(Scripted(order, len(order)), modelled(values), lag_sampler(seed)).feed([])
        return {command.pod.uid: done - began for began, done, command in thought.steps}

    assert spans(1) == spans(1, shuffled=True)
    assert spans(1) != spans(2)
    assert set(values) == set(spans(1).values())


@pytest.mark.parametrize(
    ("answer", "spans"),
    [
        pytest.param([bind("a"), WakeAt(1.0), bind("b")], [(0.0, 1.5), (1.5, 1.5), (1.5, 3.0)], id="shared evenly"),
        pytest.param([WakeAt(1.0)], [(3.0, 3.0)], id="nothing was tried"),
    ],
)
def test_measured_time_is_what_the_clock_shows(answer, spans):
    clock = ticking(10.0, 13.0)
    thought = DecisionTimer(Scripted(answer, 2), measured(lambda: next(clock)), lag_sampler(0)).feed([])

    assert (spans, 3.0) == ([(began, done) for began, done, _ in thought.steps], thought.seconds)


@pytest.mark.parametrize(
    ("elapsed", "spans", "seconds"),
    [
        pytest.param([1.0, 1.5], [(0.0, 1.0), (1.0, 1.5)], 1.5, id="each when it was given"),
        pytest.param([2.0, 1.0], [(0.0, 2.0), (2.0, 2.0)], 2.0, id="never before the one before"),
    ],
)
def test_a_decider_can_measure_its_commands_itself(elapsed, spans, seconds):
    timer = DecisionTimer(Scripted([bind("a"), pending("b")], 2), measured_by(lambda: elapsed), lag_sampler(0))
    thought = timer.feed([])

    assert (spans, seconds) == ([(began, done) for began, done, _ in thought.steps], thought.seconds)


def test_a_clock_that_goes_back_gives_no_time():
    clock = ticking(10.0, 9.0)

    assert (
        0.0 == DecisionTimer(Scripted([bind("a")], 1), measured(lambda: next(clock)), lag_sampler(0)).feed([]).seconds
    )


# ------------------------------------------------------------------------------------------------------------------ runs


def run(scenario, latency: Latency = FREE):
    trace = MemoryTrace()
    return simulate(scenario, named("lamina-balanced", registry()), trace=trace, latency=latency), trace.records


def test_decisions_of_one_feed_come_one_after_the_other():
    nodes = [a_node_spec("n1", 12, holds=["web"])]
    pods = [arriving(1.0, name) for name in "abc"]
    result, trace = run(a_scenario(nodes, pods), modelled(0.25))

    assert [
        (1.25, "decided: placed", "a"),
        (1.25, "pod-bound", "a"),
        (1.5, "decided: placed", "b"),
        (1.5, "pod-bound", "b"),
        (1.75, "decided: placed", "c"),
        (1.75, "pod-bound", "c"),
    ] == log(trace, trace_records.PodDecided, trace_records.PodBound)
    # The others' attempts are its queue, its own is its decision.
    assert [(0.0, 0.25), (0.25, 0.25), (0.5, 0.25)] == [(pod.queue, pod.decision) for pod in result.pods]


def test_what_happens_while_the_scheduler_thinks_is_heard_when_it_has_thought():
    """The second comes while the first is thought about; its attempt begins when that is over, not at its arrival."""
    nodes = [a_node_spec("n1", 12, holds=["web"])]
    result, trace = run(a_scenario(nodes, [arriving(0.0, "a"), arriving(1.0, "b")]), modelled(4.0))

    assert [(4.0, "pod-bound", "a"), (8.0, "pod-bound", "b")] == log(trace, trace_records.PodBound)
    assert [(0.0, 4.0), (3.0, 4.0)] == [(pod.queue, pod.decision) for pod in result.pods]


def test_a_decision_knows_what_had_happened_when_it_began():
    """A node with all the layers joins at 2: too late for the first pod's attempt (1 to 5), in time for the second's."""
    better = ScenarioEvent(2.0, "join", "n2", node=a_node_spec("n2", 16, holds=["web"]))
    pods = [arriving(1.0, "a"), arriving(1.5, "b")]
    result, _ = run(a_scenario([a_node_spec("n1", 16)], pods, events=(better,)), modelled(4.0))

    assert [("n1", 5.0), ("n2", 9.0)] == [(pod.node, pod.bound) for pod in result.pods]


def test_a_latency_of_nothing_is_free():
    scenario = a_scenario([a_node_spec("n1", 8)], [arriving(0.0, "a"), arriving(3.0, "b"), arriving(3.0, "c")])
    free, modelled_free = run(scenario), run(scenario, modelled(0.0))

    assert free[1] == modelled_free[1]
    assert free[0].pods == modelled_free[0].pods


def test_a_run_with_a_measured_latency_says_so():
    clock = iter(range(1000))
    result, trace = run(a_scenario([a_node_spec("n1")], [arriving(0.0, "a")]), measured(lambda: float(next(clock))))

    assert "measured" == summary(result)["latency"]
    # Nodes and images were fed first, at 0; the pod in the same instant, so that all of it took one tick.
    assert [(1.0, "pod-bound", "a")] == log(trace, trace_records.PodBound)


def test_a_pod_that_fits_nowhere_does_not_keep_a_slow_scheduler_busy_for_ever():
    result, _ = run(a_scenario([a_node_spec("n1", 1)], [arriving(0.0, "a")]), modelled(1.0))

    assert ("pending", 1.0) == (result.pods[0].phase, result.seconds)
