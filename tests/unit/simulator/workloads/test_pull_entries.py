"""What scenario files say about pulls: runtimes, disks, links and delays, and what nodes make of them."""

from pathlib import Path

import msgspec
import pytest

from lamina.simulator.pulls.runtime_spec import CONTAINERD, DiskSpec, RuntimeSpec
from lamina.simulator.workloads import Scenario, load_scenario
from lamina.simulator.workloads.pull_entries import PRESETS, DiskEntry, ScenarioRuntimeEntry

GB = 1_000_000_000


@pytest.fixture
def load(tmp_path):
    """Write files by name and load the first of them."""

    def load(**files: str) -> Scenario:
        for name, text in files.items():
            (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
        return load_scenario(Path(tmp_path) / f"{next(iter(files))}.yaml")

    return load


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("containerd", CONTAINERD),
        ("crio", msgspec.structs.replace(CONTAINERD, slots=6, reuse="prefix")),
        ("discarding", msgspec.structs.replace(CONTAINERD, reuse="prefix")),
        ("plain", RuntimeSpec(slots=1)),
    ],
)
def test_a_preset_is_a_runtime(load, name, spec):
    scenario = load(main=f"nodes: [{{name: n1, cpu: 4, memory: 16Gi, runtime: {name}}}]\n")

    assert spec == scenario.nodes[0].runtime
    assert set(PRESETS) == {"containerd", "crio", "discarding", "plain"}


def test_a_runtime_is_a_preset_and_what_is_different(load):
    scenario = load(
        main="""
runtimes:
  mine:
    preset: discarding
    parallelPulls: 3
    pullQps: 2.5
    pullBurst: 4
    slots: 5
    slotsPer: node
    connectionRate: 40MB/s
    resolve: 300ms
    unpackRate: 80MB
    unpackThreads: 2
    diskRate: 8Gbit
    writeCache: 2GB
    layerOverhead: 200ms
    ratio: 2.7
    reuse: set
    lazy: 0.1
    peers: true
  little: {slots: 0}
defaults: {runtime: mine}
nodes:
- {name: n1, cpu: 4, memory: 16Gi}
- {name: n2, cpu: 4, memory: 16Gi, runtime: little}
"""
    )

    assert [
        RuntimeSpec(
            parallel_pulls=3,
            pull_qps=2.5,
            pull_burst=4,
            slots=5,
            slots_per="node",
            connection_rate=40e6,
            resolve=0.3,
            unpack_rate=80e6,
            unpack_threads=2,
            disk_rate=1e9,
            write_cache=2_000_000_000,
            layer_overhead=0.2,
            ratio=2.7,
            reuse="set",
            lazy=0.1,
            peers=True,
        ),
        msgspec.structs.replace(CONTAINERD, slots=0),
    ] == [node.runtime for node in scenario.nodes]


def test_every_setting_of_runtimes_and_disks_can_be_said():
    """A setting of the simulator that no scenario can set is useless."""
    assert set(RuntimeSpec.__struct_fields__) == set(ScenarioRuntimeEntry.__struct_fields__) - {"preset"}
    assert set(DiskSpec.__struct_fields__) - {"capacity"} == set(DiskEntry.__struct_fields__) - {"size"}


def test_a_disk_is_a_size_or_more_and_the_defaults_fill_in(load):
    scenario = load(
        main="""
include: [below.yaml]
defaults: {disk: {low: 0.6, evictBelow: 0}}
nodes:
- {name: n1, cpu: 4, memory: 16Gi}
- {name: n2, cpu: 4, memory: 16Gi, disk: 20GB}
- {name: n3, cpu: 4, memory: 16Gi, disk: {high: 0.9, every: 1m, minAge: 0s, evictEvery: 5s, accounting: real}}
""",
        below="defaults: {disk: 10GB}\n",
    )

    assert [
        DiskSpec(capacity=10 * GB, low=0.6, evict_below=0.0),
        DiskSpec(capacity=20 * GB, low=0.6, evict_below=0.0),
        DiskSpec(
            capacity=10 * GB,
            high=0.9,
            low=0.6,
            every=60.0,
            min_age=0.0,
            evict_below=0.0,
            evict_every=5.0,
            accounting="real",
        ),
    ] == [node.disk for node in scenario.nodes]


def test_settings_of_disks_without_a_size_are_for_nodes_that_say_one(load):
    scenario = load(
        main="""
defaults: {disk: {high: 0.9}}
nodes: [{name: n1, cpu: 4, memory: 16Gi}, {name: n2, cpu: 4, memory: 16Gi, disk: 1GB}]
"""
    )

    assert [None, DiskSpec(capacity=GB, high=0.9)] == [node.disk for node in scenario.nodes]


def test_nodes_share_links_on_their_way_to_a_registry(load):
    scenario = load(
        main="""
include: [below.yaml]
registry: {rate: 10Gbit}
uplinks: {edge-1: 50Mbit, edge-2: 20MB}
nodes: [{name: n1, cpu: 4, memory: 16Gi, uplink: edge-1}, {name: n2, cpu: 4, memory: 16Gi}]
""",
        below="registry: {rate: 1Gbit}\nuplinks: {edge-3: 1Mbit}\n",
    )

    assert (1.25e9, {"edge-3": 125e3, "edge-1": 6.25e6, "edge-2": 20e6}) == (scenario.registry, scenario.uplinks)
    assert ["edge-1", ""] == [node.uplink for node in scenario.nodes]


def test_a_zone_is_a_label_and_of_several_nodes_take_turns(load):
    scenario = load(
        main="""
nodes:
- {name: n, count: 3, cpu: 4, memory: 16Gi, zone: [a, b], labels: {disk: ssd}}
- {name: m, cpu: 4, memory: 16Gi, zone: c}
"""
    )

    assert [("a", "ssd"), ("b", "ssd"), ("a", "ssd"), ("c", None)] == [
        (node.labels["topology.kubernetes.io/zone"], node.labels.get("disk")) for node in scenario.nodes
    ]


def test_delays_are_durations_or_lists_to_draw_from(load):
    scenario = load(
        main="""
include: [below.yaml]
defaults:
  reportDelay: [1s, 2s]
  reportGap: 5s
  startDelay: [500ms, 1s, 4]
  stopDelay: 1s
  restartDelay: 1s
  restartMost: 1m
  noticeDelay: 20s
  evictAfter: 0s
nodes: [{name: n1, cpu: 4, memory: 16Gi}]
""",
        below="defaults: {statusDelay: [10s, 40s], stopDelay: 9s, bindDelay: 10ms}\n",
    )
    delays = scenario.delays

    assert ((1.0, 2.0), 5.0, (10.0, 40.0)) == (delays.report, delays.report_gap, delays.status)
    assert ((0.5, 1.0, 4.0), 1.0, 0.01) == (delays.start, delays.stop, delays.bind)
    assert (1.0, 60.0, 20.0, 0.0) == (delays.restart, delays.restart_most, delays.notice, delays.evict_after)
