"""Decision logs: a run is repeated without its scheduler, byte for byte."""

import io
import itertools
import random
from collections.abc import Sequence

import pytest

from lamina.apiserver.facade_parts import assemble_facade
from lamina.model.errors import InputError
from lamina.simulator.cluster import Delays
from lamina.simulator.decider import Decider
from lamina.simulator.facade.cluster_writer import ClusterInput
from lamina.simulator.facade.decision_log import (
    DecisionLogHeader,
    DecisionLogWriter,
    FeedInputs,
    ReplayDecider,
    read_decision_log,
)
from lamina.simulator.run import simulate
from lamina.simulator.run.latency import measured_by
from lamina.simulator.run.run_parts import RunParts
from lamina.simulator.workloads import Scenario
from lamina.trace.trace_writer import MemoryTrace
from tests.unit.simulator.facade.api_client import (
    DEPLOYMENTS,
    NODES,
    PODS,
    STRATEGIC,
    ApiClient,
    a_deployment,
    a_node_object,
    a_pod_object,
)
from tests.unit.simulator.facade.facade_story import FacadeStory, place, waits
from tests.unit.simulator.test_run import a_node_spec, a_scenario, arriving, placed

HEADER = b'{"format":"lamina-decisions","version":1,"scenario":"s","scheduler":"x","seed":7,"names":["a"],"latency":"free"}\n'


def busy() -> Scenario:
    """Pods that compete for three nodes."""
    pods = [arriving(float(number), f"p{number}", cpu=1 + number % 3, duration=15.0) for number in range(24)]
    nodes = [a_node_spec(f"n{number}", holds=["web"]) for number in range(3)]
    return a_scenario(nodes, pods, delays=Delays(start=0.25), until=300.0)


def at_random(dice: random.Random) -> object:
    """Return a scheduler that places pods at random; without nodes, pods wait."""

    def schedule(client: ApiClient) -> None:
        nodes = client.names(NODES)
        for pod in filter(waits, client.get("/api/v1/pods")["items"] if nodes else ()):
            place(client, pod, {dice.choice(nodes): 1000.0})

    return schedule


def replayed(scenario: Scenario, data: bytes) -> tuple[object, MemoryTrace, ReplayDecider]:
    """Run a scenario with the decisions of a log."""
    header, feeds = read_decision_log(data, "run.decisions")
    made: list[ReplayDecider] = []

    def make(parts: RunParts) -> Decider:
        writer = assemble_facade(parts, header.scheduler).writer
        made.append(ReplayDecider(writer, header, feeds, "run.decisions"))
        return made[0]

    trace = MemoryTrace()
    result = simulate(scenario, decider=make, trace=trace)
    return result, trace, made[0]


ACTIONS = {
    0.0: lambda client: client.made(DEPLOYMENTS, a_deployment("web", replicas=2)),
    3.0: lambda client: client.made(NODES, a_node_object("extra")),
    5.0: lambda client: client.made(PODS, a_pod_object("mine")),
    7.0: lambda client: client.patch(
        f"{DEPLOYMENTS}/web",
        {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "registry.example/api:1"}]}}}},
        STRATEGIC,
    ),
    9.0: lambda client: client.delete(f"{PODS}/p4"),
    11.0: lambda client: client.patch(f"{NODES}/n1", {"spec": {"unschedulable": True}}),
    13.0: lambda client: client.delete(f"{NODES}/n2"),
    15.0: lambda client: client.delete(f"{PODS}/p9", {"gracePeriodSeconds": 0}),
    17.0: lambda client: client.delete(f"{DEPLOYMENTS}/web"),
}


@pytest.mark.parametrize(
    "actions", [pytest.param({}, id="bindings only"), pytest.param(ACTIONS, id="all kinds of inputs")]
)
def test_a_recorded_run_is_repeated_exactly(actions):
    sink = io.BytesIO()
    writer = DecisionLogWriter(sink, DecisionLogHeader(scenario="story", scheduler="default-scheduler"))
    story = FacadeStory(actions, at_random(random.Random(3)), log=writer)
    result = story.run(busy())
    again, trace, decider = replayed(busy(), sink.getvalue())

    assert story.trace.records == trace.records
    assert result == again
    assert 0 == decider.unused
    assert len(placed(result)) >= 24


def test_measured_times_of_decisions_are_recorded_and_repeated():
    """The clock advances by 1 ms at every reading: at the begin of a feed, and at each decision."""
    ticks = itertools.count()
    sink = io.BytesIO()
    header = DecisionLogHeader(scenario="story", scheduler="default-scheduler", latency="measured")
    story = FacadeStory(
        scheduler=at_random(random.Random(3)),
        log=DecisionLogWriter(sink, header),
        clock=lambda: next(ticks) / 1000,
    )
    result = story.run(busy(), latency=measured_by(lambda: story.facade.writer.elapsed))
    made: list[ReplayDecider] = []

    def make(parts: RunParts) -> Decider:
        first, feeds = read_decision_log(sink.getvalue(), "run.decisions")
        made.append(ReplayDecider(assemble_facade(parts, first.scheduler).writer, first, feeds, "run.decisions"))
        return made[0]

    def elapsed() -> Sequence[float]:
        return made[0].elapsed()

    trace = MemoryTrace()
    again = simulate(busy(), decider=make, trace=trace, latency=measured_by(elapsed))

    first = next(one for one in result.pods if one.pod == "default/p0")
    assert 0.001 == first.bound
    assert story.trace.records == trace.records
    assert result == again
    assert "measured" == result.latency


def test_a_log_has_one_line_per_feed_with_inputs():
    sink = io.BytesIO()
    writer = DecisionLogWriter(sink, DecisionLogHeader(scenario="story"))
    FacadeStory(log=writer).run(a_scenario([a_node_spec("n1", holds=["web"])], [arriving(2.0, "p", duration=1.0)]))
    header, feeds = read_decision_log(sink.getvalue(), "x")

    assert ("story", ("default-scheduler",)) == (header.scenario, header.names)
    assert [(2.0, (ClusterInput("bind", "default/p", "n1"),))] == [
        (feed.at, tuple(ClusterInput(one.op, "default/p", one.target) for one in feed.inputs)) for feed in feeds
    ]


def test_a_log_of_another_scenario_is_refused_where_it_differs():
    sink = io.BytesIO()
    writer = DecisionLogWriter(sink, DecisionLogHeader())
    FacadeStory(log=writer).run(a_scenario([a_node_spec("n1")], [arriving(2.0, "p", duration=1.0)]))

    with pytest.raises(InputError, match=r"feed 2 is at 3 s in this run and at 2 s in the log; use the scenario"):
        replayed(a_scenario([a_node_spec("n1")], [arriving(3.0, "p", duration=1.0)]), sink.getvalue())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", r"run.decisions:1: is not a decision log", id="empty"),
        pytest.param(b"hello\n", r"run.decisions:1: is not a decision log", id="no JSON"),
        pytest.param(b'{"format":"other","version":1}\n', r"has the format other 1; this version reads", id="format"),
        pytest.param(b'{"version":99}\n', r"lamina-decisions 99", id="version"),
        pytest.param(HEADER + b'{"feed":1,"at":', r"run.decisions:2: cannot be read.*cut short", id="cut short"),
    ],
)
def test_a_file_that_is_no_log_is_refused_with_its_line(data, words):
    with pytest.raises(InputError, match=words):
        read_decision_log(data, "run.decisions")


def test_what_is_written_is_read():
    sink = io.BytesIO()
    writer = DecisionLogWriter(sink, DecisionLogHeader(scenario="s", scheduler="x", seed=7, names=("a",)))
    inputs = (ClusterInput("delete", "uid-1", seconds=30.0), ClusterInput("node", "n1", object={"kind": "Node"}))
    writer.write(FeedInputs(3, 170.0, inputs))

    assert sink.getvalue().startswith(HEADER)
    assert (DecisionLogHeader(scenario="s", scheduler="x", seed=7, names=("a",)), [FeedInputs(3, 170.0, inputs)]) == (
        read_decision_log(sink.getvalue(), "x")
    )
