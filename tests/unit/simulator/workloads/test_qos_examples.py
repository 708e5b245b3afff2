"""The scenarios of the QoS experiments in examples/qos have the numbers of the published rules."""

from pathlib import Path

import pytest

from lamina.simulator.controllers import ControllerSpec
from lamina.simulator.workloads import Scenario, load_scenario

EXAMPLES = Path(__file__).resolve().parents[4] / "examples" / "qos"
FILES = sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.yaml") if "cluster" not in path.name)


def pods_of(spec: ControllerSpec) -> int:
    return spec.parallelism if spec.kind == "Job" else spec.replicas


def classes(scenario: Scenario) -> dict[str, int]:
    found: dict[str, int] = {}
    for spec in scenario.controllers:
        group = spec.template.labels["class"]
        found[group] = found.get(group, 0) + 1
    return dict(sorted(found.items()))


def slots(scenario: Scenario) -> int:
    """The number of pods that the nodes hold, which all have the same requests."""
    asked = dict(scenario.controllers[0].template.requests)
    return sum(min(dict(node.allocatable)[name] // asked[name] for name in asked) for node in scenario.nodes)


def promised(scenario: Scenario) -> float:
    return sum(float(spec.template.annotations["slo"]) * pods_of(spec) for spec in scenario.controllers)


THREE = {"batch": 80, "free": 96, "prod": 80}


@pytest.mark.parametrize(
    ("name", "expected", "room", "promise"),
    [
        pytest.param("validation1.yaml", THREE, 200, 200.0, id="validation 1"),
        pytest.param("validation2.yaml", {"batch": 221}, 200, 198.9, id="validation 2"),
        pytest.param("kwok80.yaml", {"bronze": 80, "gold": 100}, 200, 140.0, id="kwok 80"),
        pytest.param("kwok120.yaml", {"bronze": 120, "gold": 100}, 200, 160.0, id="kwok 120"),
        pytest.param("kwok160.yaml", {"bronze": 160, "gold": 100}, 200, 180.0, id="kwok 160"),
        pytest.param("kwok200.yaml", {"bronze": 200, "gold": 100}, 200, 200.0, id="kwok 200"),
        pytest.param("kwok256.yaml", THREE, 200, 200.0, id="kwok 256"),
        pytest.param("sanity.yaml", {"batch": 1, "free": 1, "lower": 1, "prod": 1}, 6, 5.3, id="sanity"),
    ],
)
def test_the_classes_and_what_they_promise(name, expected, room, promise):
    scenario = load_scenario(EXAMPLES / name)

    assert (expected, room) == (classes(scenario), slots(scenario))
    assert promise == pytest.approx(promised(scenario))


@pytest.mark.parametrize(
    ("approach", "replicas", "suffix"),
    [
        pytest.param("average", 4, "", id="average"),
        pytest.param("concurrent", 4, "", id="concurrent"),
        pytest.param("independent", 4, "", id="independent"),
        pytest.param("concurrent", 2, "-2-replicas", id="concurrent, two replicas"),
        pytest.param("concurrent", 8, "-8-replicas", id="concurrent, eight replicas"),
    ],
)
@pytest.mark.parametrize(
    ("level", "count", "requested", "promise"),
    [
        pytest.param("no", 22, 74.8, 70.0, id="no contention"),
        pytest.param("medium", 24, 81.6, 76.8, id="medium contention"),
        pytest.param("high", 26, 88.4, 83.6, id="high contention"),
    ],
)
def test_services_request_and_promise_the_published_sums(  # noqa: PLR0917 - two tables
    approach, replicas, suffix, level, count, requested, promise
):
    scenario = load_scenario(EXAMPLES / "exp1" / f"{approach}-{level}{suffix}.yaml")

    assert count * 4 // replicas == len(scenario.controllers)
    assert {replicas} == {spec.replicas for spec in scenario.controllers}
    assert requested == pytest.approx(0.85 * sum(map(pods_of, scenario.controllers)))
    assert promise == pytest.approx(0.85 * promised(scenario), abs=0.05)
    assert {approach} == {spec.template.annotations["qosMeasuring"] for spec in scenario.controllers}
    # 78.2 cpu: the promises of high contention do not fit.
    assert 92 == slots(scenario)


@pytest.mark.parametrize(
    ("name", "count", "requested"),
    [
        pytest.param("jobs-20", 20, 73.1, id="20 jobs"),
        pytest.param("jobs-26", 26, 93.5, id="26 jobs"),
        pytest.param("jobs-32", 32, 113.9, id="32 jobs"),
        pytest.param("jobs-61", 61, 212.5, id="61 jobs"),
        pytest.param("more-bot", 30, 107.1, id="more bags of tasks"),
    ],
)
def test_jobs_request_the_published_sums(name, count, requested):
    scenario = load_scenario(EXAMPLES / "exp2" / f"{name}.yaml")

    assert [count, {("Job", 800, 180.0)}] == [
        len(scenario.controllers),
        {(spec.kind, spec.replicas, spec.life.seconds) for spec in scenario.controllers},
    ]
    assert requested == pytest.approx(0.85 * sum(map(pods_of, scenario.controllers)))


@pytest.mark.parametrize("name", FILES)
def test_every_scenario_promises_something_and_says_how_it_was_made(name):
    scenario = load_scenario(EXAMPLES / name)

    assert all("slo" in spec.template.annotations for spec in scenario.controllers)
    header = (EXAMPLES / name).read_text(encoding="utf-8").split("name:", maxsplit=1)[0]
    assert "Rebuilt" in header.replace("# ", "")
