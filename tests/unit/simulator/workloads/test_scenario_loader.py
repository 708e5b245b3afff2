"""From scenario files to what runs: names resolved, copies made, times sorted, files joined."""

from pathlib import Path

import pytest

from lamina.layers.catalog import folded
from lamina.model.digest import digest_of
from lamina.model.image import Layer
from lamina.model.pod import Container
from lamina.model.resources import amounts
from lamina.model.taints import Taint, Toleration
from lamina.simulator.cluster import Delays, UsageSpec
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER
from lamina.simulator.pulls.runtime_spec import CONTAINERD
from lamina.simulator.workloads import PodArrival, Scenario, ScenarioEvent, load_scenario

MB = 1_000_000

NODE = "nodes: [{name: n1, cpu: 4, memory: 16Gi}]\n"
IMAGES = "layers: {L1: 300MB, L2: 200MB}\nimages: {'web:1': [L1, L2]}\n"


@pytest.fixture
def load(tmp_path):
    """Write files by name and load the first of them."""

    def load(**files: str) -> Scenario:
        for name, text in files.items():
            path = tmp_path / f"{name}.yaml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return load_scenario(Path(tmp_path) / f"{next(iter(files))}.yaml")

    return load


def a_layer(name: str, size: int) -> Layer:
    return Layer(digest_of(f"layer {name}".encode()), size)


def test_a_scenario_that_says_little_gets_the_usual(load):
    scenario = load(small=NODE)
    node = scenario.nodes[0]

    assert ("small", "", "", None) == (scenario.name, scenario.about, scenario.profile, scenario.until)
    assert Delays(report=1.0, report_gap=10.0, status=(10.0, 20.0, 30.0, 40.0), start=0.5, bind=0.0) == scenario.delays
    assert (CONTAINERD, None, "") == (node.runtime, node.disk, node.uplink)
    assert ((), 0.0, {}) == (scenario.controllers, scenario.registry, scenario.uplinks)
    assert ("n1", 125.0 * MB, (), {}, ()) == (node.name, node.bandwidth, node.holds, node.labels, node.taints)
    assert amounts({"cpu": 4, "memory": "16Gi", "pods": 110}) == node.allocatable
    assert ((), ()) == (scenario.arrivals, scenario.events)


def test_defaults_hold_where_nothing_else_is_said(load):
    scenario = load(
        main="""
defaults: {bandwidth: 10MB, reportDelay: 2s, statusDelay: 40s, startDelay: 0, bindDelay: 50ms}
nodes:
- {name: slow, cpu: 4, memory: 16Gi}
- {name: fast, cpu: 4, memory: 16Gi, bandwidth: 1GB/s}
until: 1h
"""
    )

    assert Delays(report=2.0, report_gap=10.0, status=40.0, start=0.0, bind=0.05) == scenario.delays
    assert [10.0 * MB, 1000.0 * MB] == [node.bandwidth for node in scenario.nodes]
    assert 3600.0 == scenario.until


def test_images_are_made_of_named_layers_bottom_first(load):
    scenario = load(
        main=NODE
        + """
layers: {L1: 300MB, L2: 200MB}
images:
  registry.example/web:1: [L1, L2, L3]
  registry.example/api:1: {L1: 300MB, L3: 5MB}
"""
    )
    web, api = scenario.images

    # L3 has its size where the other image lists it, which may come later.
    assert (a_layer("L1", 300 * MB), a_layer("L2", 200 * MB), a_layer("L3", 5 * MB)) == web.layers
    assert (a_layer("L1", 300 * MB), a_layer("L3", 5 * MB)) == api.layers
    assert ("registry.example/web:1",) == web.names
    assert digest_of(b"image registry.example/web:1") == web.digest


def test_an_image_pinned_to_a_digest_has_that_digest(load):
    digest = digest_of(b"anything")
    scenario = load(main=f"{NODE}images: {{'web@{digest}': {{L1: 1MB}}}}\n")

    assert [digest] == [image.digest for image in scenario.images]


def test_one_image_may_be_listed_under_two_spellings(load):
    scenario = load(main=NODE + "layers: {L1: 1}\nimages: {nginx: [L1], 'docker.io/library/nginx:latest': [L1]}\n")

    assert ["docker.io/library/nginx:latest"] == [folded(image.names[0]) for image in scenario.images]


def test_a_count_makes_equal_nodes_with_numbers(load):
    scenario = load(
        main=IMAGES
        + """
nodes:
- name: n
  count: 3
  cpu: 500m
  memory: 1Gi
  pods: 5
  resources: {nvidia.com/gpu: 2}
  holds: ["web:1"]
  labels: {zone: a}
  taints: [{key: gpu, effect: PreferNoSchedule}]
- {name: single, count: 1, cpu: 1, memory: 1Gi}
"""
    )
    node = scenario.nodes[1]

    assert ["n1", "n2", "n3", "single"] == [node.name for node in scenario.nodes]
    assert amounts({"cpu": "500m", "memory": "1Gi", "pods": 5, "nvidia.com/gpu": 2}) == node.allocatable
    assert ((scenario.images[0],), {"zone": "a"}) == (node.holds, node.labels)
    assert (Taint("gpu", "", "PreferNoSchedule"),) == node.taints


def test_a_pod_is_what_its_entry_says(load):
    scenario = load(
        main=IMAGES
        + """
nodes: [{name: n1, cpu: 4, memory: 16Gi, resources: {nvidia.com/gpu: 1}}]
pods:
- name: p
  at: 1m
  images: ["web:1", "docker.io/library/web:1"]
  init: ["web:1"]
  cpu: 1500m
  memory: 1Gi
  resources: {nvidia.com/gpu: 1}
  duration: 60s
  priority: 7
  scheduler: other
  tolerations: [{key: gpu, operator: Exists}]
"""
    )
    arrival = scenario.arrivals[0]
    pod = arrival.pod
    asked = amounts({"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": 1})

    assert (60.0, 60.0, "p", "p", 60.0) == (arrival.at, arrival.duration, pod.uid, pod.name, pod.created_at)
    assert (Container("web:1", asked), Container("docker.io/library/web:1")) == pod.containers
    assert (Container("web:1"),) == pod.init_containers
    assert (asked, 7, "other") == (pod.requests, pod.priority, pod.scheduler_name)
    assert (Toleration("gpu", "Exists"),) == pod.tolerations


def test_copies_of_a_pod_come_one_after_the_other_and_all_are_sorted_by_time(load):
    scenario = load(
        main=IMAGES
        + NODE
        + """
pods:
- {name: web, count: 3, at: 10s, every: 5s, image: web:1}
- {name: first, image: web:1}
- {name: burst, count: 2, at: 15s, image: web:1}
"""
    )

    # At one time the order of the file counts.
    assert [
        ("first", 0.0),
        ("web1", 10.0),
        ("web2", 15.0),
        ("burst1", 15.0),
        ("burst2", 15.0),
        ("web3", 20.0),
    ] == [(arrival.pod.name, arrival.at) for arrival in scenario.arrivals]


def test_times_of_copies_are_the_decimals_one_would_write(load):
    scenario = load(main=IMAGES + NODE + "pods: [{name: p, count: 4, every: 50ms, image: 'web:1'}]\n")

    assert [0.0, 0.05, 0.1, 0.15] == [arrival.at for arrival in scenario.arrivals]


def test_events_are_sorted_by_time(load):
    scenario = load(
        main=IMAGES
        + NODE
        + """
pods: [{name: p, count: 2, image: web:1}]
events:
- {at: 2m, drop: n1}
- {at: 30s, remove: p2}
- {at: 1m, cordon: n1}
"""
    )

    assert (
        ScenarioEvent(30.0, "remove", "p2"),
        ScenarioEvent(60.0, "cordon", "n1"),
        ScenarioEvent(120.0, "drop", "n1"),
    ) == scenario.events


def test_files_are_joined_and_the_including_one_has_the_last_word(load):
    scenario = load(
        main="""
name: main
include: [images.yaml, cluster.yaml]
defaults: {reportDelay: 3s}
pods: [{name: p1, image: web:1}]
profile: layers
""",
        images=f"name: images\nabout: shared\ninclude: [layers.yaml]\n{IMAGES}",
        layers="layers: {L1: 300MB, L9: 1MB}\n",
        cluster=f"include: [layers.yaml]\nprofile: other\nuntil: 5m\ndefaults: {{reportDelay: 9s, bandwidth: 1MB}}\n{NODE}",
    )

    assert ("main", "", "layers", 300.0) == (scenario.name, scenario.about, scenario.profile, scenario.until)
    assert (3.0, 1.0 * MB) == (scenario.delays.report, scenario.nodes[0].bandwidth)
    assert ["p1"] == [arrival.pod.name for arrival in scenario.arrivals]


def test_an_end_at_zero_is_an_end(load):
    assert 0.0 == load(main=NODE + "until: 0\n").until


def test_a_scenario_can_be_labelled_with_another_profile(load):
    scenario = load(main=NODE + "profile: layers\n")

    assert ("layers", "other") == (scenario.profile, scenario.under("other").profile)


def test_an_arrival_without_a_duration_runs_until_the_end(load):
    scenario = load(main=IMAGES + NODE + "pods: [{name: p, image: 'web:1'}]\n")

    assert PodArrival(0.0, scenario.arrivals[0].pod, RUNS_FOREVER) == scenario.arrivals[0]


# ---------------------------------------------------------------------------------------- use, annotations and limits


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param("", None, id="not measured"),
        pytest.param("usage: {}\n", UsageSpec(every=60.0, window=900.0), id="the usual"),
        pytest.param("usage: {every: 30s, window: 5m}\n", UsageSpec(every=30.0, window=300.0), id="both"),
        pytest.param("usage: {every: 10m}\n", UsageSpec(every=600.0, window=900.0), id="one of them"),
        pytest.param("usage: null\n", None, id="nothing"),
    ],
)
def test_use_is_measured_only_if_the_scenario_says_so(load, said, expected):
    assert expected == load(main=NODE + said).usage


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param("", UsageSpec(every=30.0), id="that of the included file"),
        pytest.param("usage: {every: 90s}\n", UsageSpec(every=90.0), id="the including file has the last word"),
        pytest.param("usage: null\n", None, id="and may take it away"),
    ],
)
def test_how_use_is_measured_is_a_single_value(load, said, expected):
    assert expected == load(main=f"include: [more.yaml]\n{said}", more=f"{NODE}usage: {{every: 30s}}\n").usage


def test_nodes_carry_annotations(load):
    text = "nodes: [{name: n, count: 2, cpu: 4, memory: 16Gi, zone: [a, b], annotations: {congestion-factor: '7'}}]\n"

    assert [{"congestion-factor": "7"}] * 2 == [node.annotations for node in load(main=text).nodes]


@pytest.mark.parametrize(
    ("said", "requests", "limits", "of_pod"),
    [
        pytest.param("cpu: 1", {"cpu": 1}, {}, {}, id="none: its requests count"),
        pytest.param(
            "cpu: 1, memory: 1Gi, limits: {cpu: 2}",
            {"cpu": 1, "memory": "1Gi"},
            {"cpu": 2},
            {"cpu": 2, "memory": "1Gi"},
            id="of cpu, and memory as requested",
        ),
        pytest.param("limits: {cpu: 2}", {"cpu": 2}, {"cpu": 2}, {"cpu": 2}, id="a limit is the request too"),
        pytest.param(
            "cpu: 0, limits: {cpu: 2}", {"cpu": 0}, {"cpu": 2}, {"cpu": 2}, id="unless that is said to be nothing"
        ),
    ],
)
def test_limits_stand_beside_requests(load, said, requests, limits, of_pod):
    text = f"{NODE}{IMAGES}pods: [{{name: p, images: ['web:1', 'web:1'], {said}}}]\n"
    pod = load(main=text).arrivals[0].pod
    first, second = pod.containers

    assert (amounts(requests), amounts(limits)) == (first.requests, first.limits)
    assert ((), ()) == (second.requests, second.limits)
    assert (amounts(requests), amounts(of_pod)) == (pod.requests, pod.limits)


def test_controllers_make_pods_with_limits(load):
    text = f"{NODE}{IMAGES}deployments: [{{name: d, image: 'web:1', cpu: 1, limits: {{cpu: 3}}}}]\n"

    assert amounts({"cpu": 3}) == load(main=text).controllers[0].template.limits
