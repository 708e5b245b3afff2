"""What scenario files say about controllers, about how pods live, and about what happens to them."""

from pathlib import Path

import pytest

from lamina.model.errors import InputError
from lamina.model.pod import SpreadConstraint
from lamina.model.resources import amounts
from lamina.model.selectors import LabelSelector
from lamina.simulator.cluster.pod_lifecycle import LifecycleStage, PodLifecycle
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.workloads import Scenario, ScenarioEvent, load_scenario

IMAGES = "layers: {L1: 300MB, L2: 200MB}\nimages: {'web:1': [L1, L2], 'web:2': [L1]}\n"
NODE = "nodes: [{name: n1, cpu: 4, memory: 16Gi}]\n"


@pytest.fixture
def load(tmp_path):
    """Write a scenario with an image and a node, and load it."""

    def load(text: str) -> Scenario:
        path = Path(tmp_path) / "main.yaml"
        path.write_text(IMAGES + NODE + text, encoding="utf-8")
        return load_scenario(path)

    return load


def settings(spec: ControllerSpec) -> tuple[object, ...]:
    return (
        spec.kind,
        spec.name,
        spec.at,
        spec.replicas,
        spec.parallelism,
        spec.surge,
        spec.unavailable,
        spec.backoff_limit,
    )


# ---------------------------------------------------------------------------------------------------------- controllers


def test_controllers_are_what_their_entries_say_in_the_order_of_their_times(load):
    scenario = load(
        """
jobs:
- {name: batch, at: 1m, image: "web:1", duration: 10s, completions: 5, parallelism: 2, backoffLimit: 1}
daemonSets:
- {name: agent, at: 5s, image: "web:1", unavailable: 10%}
statefulSets:
- {name: db, at: 5s, image: "web:1", replicas: 3}
deployments:
- {name: web, image: "web:1", replicas: 0, surge: 2, unavailable: 50%}
- {name: plain, image: "web:1"}
"""
    )

    assert [
        ("Deployment", "web", 0.0, 0, 1, 2, 0.5, 6),
        ("Deployment", "plain", 0.0, 1, 1, 0.25, 0.25, 6),
        ("StatefulSet", "db", 5.0, 3, 1, 0.25, 0.25, 6),
        ("DaemonSet", "agent", 5.0, 1, 1, 0, 0.1, 6),
        ("Job", "batch", 60.0, 5, 2, 0.25, 0.25, 1),
    ] == [settings(spec) for spec in scenario.controllers]


def test_a_rollout_may_wait_for_pods_that_have_run_for_a_while(load):
    assert 15.0 == load("deployments: [{name: web, image: 'web:1', minReady: 15s}]\n").controllers[0].min_ready


def test_a_template_is_what_a_pod_entry_would_be(load):
    scenario = load(
        """
pods: [{name: p, image: "web:1", init: ["web:2"], cpu: 1, memory: 1Gi, priority: 3, scheduler: other}]
deployments: [{name: web, image: "web:1", init: ["web:2"], cpu: 1, memory: 1Gi, priority: 3, scheduler: other}]
"""
    )
    pod, template = scenario.arrivals[0].pod, scenario.controllers[0].template

    assert (pod.containers, pod.init_containers) == (template.containers, template.init_containers)
    assert (pod.requests, pod.scoring_requests) == (template.requests, template.scoring_requests)
    assert (pod.priority, pod.scheduler_name) == (template.priority, template.scheduler_name)


def test_pods_of_a_controller_without_labels_have_one_by_which_they_are_spread(load):
    scenario = load(
        """
deployments:
- {name: web, count: 2, every: 10s, image: "web:1", spread: [{key: zone}]}
- {name: api, image: "web:1", labels: {tier: back}, spread: [{key: zone}]}
"""
    )

    def spread(name: str, value: str) -> tuple[SpreadConstraint, ...]:
        return (SpreadConstraint(1, "zone", "DoNotSchedule", LabelSelector(((name, value),))),)

    assert [
        ("web1", 0.0, {"app": "web1"}, spread("app", "web1")),
        ("api", 0.0, {"tier": "back"}, spread("tier", "back")),
        ("web2", 10.0, {"app": "web2"}, spread("app", "web2")),
    ] == [(spec.name, spec.at, spec.template.labels, spec.template.spread) for spec in scenario.controllers]


# ---------------------------------------------------------------------------------------------------------------- lives


@pytest.mark.parametrize(
    ("said", "life"),
    [
        pytest.param("", PodLifecycle(), id="nothing"),
        pytest.param("duration: 5m", PodLifecycle(seconds=300.0), id="a duration"),
        pytest.param(
            "stages: [{seconds: 100ms, usage: {cpu: 2, memory: 1Gi}}, {seconds: 200ms}]",
            PodLifecycle(
                seconds=0.3, stages=(LifecycleStage(0.1, amounts({"cpu": 2, "memory": "1Gi"})), LifecycleStage(0.2))
            ),
            id="stages",
        ),
        pytest.param(
            "annotations: {simSpec: '[{seconds: 5, resourceUsage: {cpu: 100m, nvidia.com/gpu: 1}}, {seconds: 10}]'}",
            PodLifecycle(
                seconds=15.0,
                stages=(LifecycleStage(5.0, amounts({"cpu": "100m", "nvidia.com/gpu": 1})), LifecycleStage(10.0)),
            ),
            id="the annotation of k8s-cluster-simulator",
        ),
        pytest.param(
            "duration: 1s, restart: OnFailure, failures: 2, deadline: 1m",
            PodLifecycle(seconds=1.0, restart="OnFailure", failures=2, deadline=60.0),
            id="failures",
        ),
        pytest.param(
            "grace: 5s, stopping: 10s, unreachable: 0",
            PodLifecycle(grace=5.0, stopping=10.0, unreachable=0.0),
            id="an end",
        ),
    ],
)
def test_a_pod_lives_as_its_entry_says(load, said, life):
    assert life == load(f"pods: [{{name: p, image: 'web:1', {said}}}]\n").arrivals[0].life


@pytest.mark.parametrize(
    ("field", "said", "restart"),
    [
        ("pods", "duration: 5s", "Never"),
        ("jobs", "duration: 5s", "Never"),
        ("jobs", "duration: 5s, restart: OnFailure", "OnFailure"),
        ("deployments", "duration: 5s", "Always"),
        ("deployments", "restart: Always", "Always"),
        ("statefulSets", "", "Always"),
        ("daemonSets", "", "Always"),
    ],
)
def test_who_makes_a_pod_says_whether_it_is_restarted(load, field, said, restart):
    scenario = load(f"until: 1h\n{field}: [{{name: p, image: 'web:1', {said}}}]\n")

    assert [restart] == [one.life.restart for one in (*scenario.arrivals, *scenario.controllers)]


# --------------------------------------------------------------------------------------------------------------- events


def test_events_say_what_happens_to_nodes_pods_and_controllers(load):
    scenario = load(
        """
pods: [{name: p, image: "web:1"}]
deployments: [{name: web, image: "web:1"}]
events:
- {at: 1s, cordon: n1}
- {at: 2s, uncordon: n1}
- {at: 3s, drain: n1}
- {at: 4s, fail: n1, for: 500ms}
- {at: 5s, fail: n1}
- {at: 6s, recover: n1}
- {at: 7s, scale: {name: web, to: 9}}
- {at: 8s, update: {name: web, image: "web:2"}}
- {at: 9s, remove: p}
"""
    )

    assert (
        ScenarioEvent(1.0, "cordon", "n1"),
        ScenarioEvent(2.0, "uncordon", "n1"),
        ScenarioEvent(3.0, "drain", "n1"),
        ScenarioEvent(4.0, "fail", "n1"),
        ScenarioEvent(4.5, "recover", "n1"),
        ScenarioEvent(5.0, "fail", "n1"),
        ScenarioEvent(6.0, "recover", "n1"),
        ScenarioEvent(7.0, "scale", "web", count=9),
        ScenarioEvent(8.0, "update", "web", image="web:2"),
        ScenarioEvent(9.0, "remove", "p"),
    ) == scenario.events


def test_nodes_that_join_are_like_others_and_pods_may_need_them(load):
    scenario = load(
        """
defaults: {bandwidth: 1MB, disk: 10GB}
pods: [{name: p, image: "web:1", cpu: 64}]
events:
- {at: 1m, join: {name: big, count: 2, cpu: 64, memory: 256Gi, zone: b}}
- {at: 2m, drop: big1}
"""
    )
    first, second, last = scenario.events

    assert ["n1"] == [node.name for node in scenario.nodes]
    assert [(60.0, "join", "big1"), (60.0, "join", "big2"), (120.0, "drop", "big1")] == [
        (one.at, one.kind, one.name) for one in (first, second, last)
    ]
    assert second.node is not None
    assert ("big2", 1e6, {"topology.kubernetes.io/zone": "b"}) == (
        second.node.name,
        second.node.bandwidth,
        second.node.labels,
    )
    assert scenario.nodes[0].disk == second.node.disk


# ------------------------------------------------------------------------------------------------- promises and mixes


def test_a_promise_becomes_annotations_and_a_label_of_the_pods(load):
    scenario = load(
        """
deployments:
- {name: gold, count: 2, image: "web:1", qos: {slo: 0.95, class: gold, measuring: concurrent, overhead: 0.05}}
pods:
- {name: bare, image: "web:1", qos: {slo: 1}, annotations: {slo: "0.5"}}
- {name: owned, owner: set, image: "web:1", qos: {slo: 0}}
"""
    )

    first, second = (spec.template for spec in scenario.controllers)
    rest = {"slo": "0.95", "qosMeasuring": "concurrent", "acceptablePreemptionOverhead": "0.05"}
    assert [{"controller": name, **rest} for name in ("gold1", "gold2")] == [first.annotations, second.annotations]
    assert {"app": "gold1", "class": "gold"} == first.labels
    assert [{"controller": "bare", "slo": "0.5"}, {"controller": "set", "slo": "0"}] == [
        arrival.pod.annotations for arrival in scenario.arrivals
    ]


MIX = """
deployments:
- {name: a, count: 40, at: 5s, every: 2s, mix: all, image: "web:1"}
- {name: b, count: 20, at: 5s, every: 2s, mix: all, image: "web:1"}
jobs:
- {name: c, count: 10, at: 5s, every: 2s, mix: all, image: "web:1", duration: 5s}
- {name: alone, count: 2, at: 5s, every: 2s, image: "web:1", duration: 5s}
"""


def test_the_copies_of_a_mix_arrive_one_by_one_in_an_order_drawn_from_the_seed(tmp_path):
    path = tmp_path / "mix.yaml"
    path.write_text(IMAGES + NODE + MIX, encoding="utf-8")

    def order(seed: int) -> list[str]:
        found = [(spec.at, spec.name) for spec in load_scenario(path, seed).controllers]
        mixed = [one for one in found if not one[1].startswith("alone")]
        assert [5.0 + 2.0 * place for place in range(70)] == [at for at, _ in mixed]
        assert [(5.0, "alone1"), (7.0, "alone2")] == [one for one in found if one not in mixed]
        return [name for _, name in mixed]

    assert order(1) == order(1) != order(2)
    for prefix, count in (("a", 40), ("b", 20), ("c", 10)):
        own = [name for name in order(1) if name.startswith(prefix)]
        assert [f"{prefix}{number}" for number in range(1, count + 1)] == own
    assert ["a"] * 40 != [name[0] for name in order(1)][:40]


def test_the_entries_of_a_mix_have_the_same_times(load):
    with pytest.raises(InputError) as caught:
        load(
            """
deployments:
- {name: a, count: 2, every: 1s, mix: all, image: "web:1"}
- {name: b, count: 2, at: 3s, every: 2s, mix: all, image: "web:1"}
"""
        )

    place = caught.value.mistakes[0].source
    assert [
        f"{place}:7: deployments[1].{field}: the mix 'all' has {there} s in {place}:6, and {here} s here; "
        "write the same time"
        for field, here, there in (("at", 3, 0), ("every", 2, 1))
    ] == [str(mistake) for mistake in caught.value.mistakes]
