"""What should stand on nodes: what is free as measured, what was asked for, how congested they are."""

import re

import pytest

from lamina.clients.prometheus.errors import PrometheusError
from lamina.model.node import Node
from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.services.annotator.allocation_values import AllocationValues
from lamina.services.annotator.congestion_values import CARDS, CongestionValues, expressions
from lamina.services.annotator.usage_values import UsageValues
from lamina.services.informers.usage.queries import Queries
from lamina.testing import a_node, a_pod
from tests.unit.services.informers.usage.scripted import NOON, ScriptedPrometheus, ScriptedSource

N1 = a_node("n1", cpu=4, memory="8Gi", pods=10)
GIB = 1024**3


def plain(wanted):
    return {node: {key: number.value for key, number in one.numbers.items()} for node, one in wanted.items()}


# ----------------------------------------------------------------------------------------------------------------- usage


async def used(*usages: NodeUsage, now=NOON):
    values = UsageValues(ScriptedSource(usages))
    return await values.values({"n1": N1}, now), values.remark


async def test_what_is_free_is_what_a_node_can_give_less_what_is_used():
    wanted, _ = await used(
        NodeUsage("n1", ResourceUsage(1500.4, 200.0), ResourceUsage(2.0 * GIB, 1e6), NOON - 900, NOON)
    )

    assert {
        "n1": {
            "mean-free-cpu": 2500,
            "std-free-cpu": 200,
            "mean-free-memory": 6 * GIB,
            "std-free-memory": 1_000_000,
        }
    } == plain(wanted)
    # A step is 2 % of what the node can give: 80 of 4000.
    assert (80.0, NOON) == (wanted["n1"].numbers["mean-free-cpu"].step, wanted["n1"].observed_at)


async def test_a_forecast_is_written_only_when_there_is_one_and_nothing_is_below_nothing():
    wanted, _ = await used(NodeUsage("n1", ResourceUsage(9000.0, 0.0, forecast=1000.0), None, NOON - 900, NOON))

    assert {"n1": {"mean-free-cpu": 0, "std-free-cpu": 0, "forcasted-free-cpu": 3000}} == plain(wanted)


async def test_what_was_not_measured_is_unknown_and_not_wanted_away():
    wanted, _ = await used(NodeUsage("n1", None, ResourceUsage(2.0 * GIB, 1e6), NOON - 900, NOON))

    assert {"mean-free-cpu", "std-free-cpu", "forcasted-free-cpu", "forcasted-free-memory"} == wanted["n1"].unknown


async def test_a_clock_too_far_from_ours_is_remarked():
    wanted, remark = await used(NodeUsage("n1", ResourceUsage(1.0), None, NOON - 900, NOON), now=NOON + 1000)

    assert ({}, "1 node has a clock that differs too much from ours") == (wanted, remark)


# ------------------------------------------------------------------------------------------------------------ allocation


async def test_requests_of_every_bound_pod_count_whether_it_runs_or_not():
    gpus = a_node("gpus", cpu=2, memory="4Gi", pods=10, more={"nvidia.com/gpu": 4, "ephemeral-storage": "10Gi"})
    pods = [
        a_pod("runs", cpu=1, memory="1Gi", on="n1", started=True),
        a_pod("pulls", cpu=1, memory="1Gi", on="n1"),
        a_pod("waits", cpu=1),
        a_pod("big", cpu=3, on="gpus", more={"nvidia.com/gpu": 1, "amd.com/gpu": 1, "ephemeral-storage": "1Gi"}),
        a_pod("elsewhere", cpu=1, on="gone"),
        a_pod("not ready", cpu=1, on="sick"),
    ]
    nodes = {"n1": N1, "gpus": gpus, "sick": a_node("sick")}
    wanted = await AllocationValues(lambda: pods, lambda: {"n1", "gpus"}).values(nodes, NOON)

    assert {
        "n1": {
            "requested-cpu": 2000,
            "free-cpu": 2000,
            "requested-memory": 2 * GIB,
            "free-memory": 6 * GIB,
            "requested-pods": 2,
            "free-pods": 8,
        },
        "gpus": {
            "requested-cpu": 3000,
            "free-cpu": 0,
            "requested-memory": 0,
            "free-memory": 4 * GIB,
            "requested-pods": 1,
            "free-pods": 9,
            "requested-gpu": 2,
            "free-gpu": 2,
            "requested-ephemeral-storage": GIB,
            "free-ephemeral-storage": 9 * GIB,
        },
    } == plain(wanted)
    assert (1.0, 40.0) == (
        wanted["n1"].numbers["requested-pods"].step,
        wanted["n1"].numbers["requested-cpu"].step,
    )


# ------------------------------------------------------------------------------------------------------------ congestion


def congested(node: Node, *, at=NOON, **shares: float):
    table = {f"node_{metric}": [({"node": node.name}, share)] for metric, share in shares.items() if metric != "device"}
    return CongestionValues(ScriptedPrometheus(table, at=at), Queries(matchers='c="x"'))


async def test_the_worst_part_decides_and_both_directions_of_the_network_count():
    values = congested(N1, pressure_cpu_waiting=0.0, network_receive=0.1, network_transmit=0.95, disk=0.2)

    assert {"n1": {"congestion-factor": 100}} == plain(await values.values({"n1": N1}, NOON))


async def test_parts_may_name_a_node_by_labels_of_their_own():
    table = {"cpu_waiting": [({"node": "n1"}, 0.35)], "disk": [({"instance": "n1:9100"}, 1.0)]}
    values = CongestionValues(ScriptedPrometheus(table))

    assert ({"n1": {"congestion-factor": 100}}, "") == (plain(await values.values({"n1": N1}, NOON)), values.remark)


async def test_a_level_rises_and_falls_with_time():
    values = congested(N1, pressure_io_waiting=0.60)
    node = a_node(
        "n1", annotations={"congestion-factor": "0", "lamina.dev/congestion-observed-at": "2026-03-01T11:59:30Z"}
    )
    # It goes on from what stands there: 30 s later half of the way to 100 is gone.
    assert {"n1": {"congestion-factor": 50}} == plain(await values.values({"n1": node}, NOON))
    assert {"n1": {"congestion-factor": 75}} == plain(await values.values({"n1": node}, NOON + 30))


async def test_an_old_annotation_is_not_gone_on_from():
    values = congested(N1, pressure_io_waiting=0.60)
    node = a_node(
        "n1", annotations={"congestion-factor": "0", "lamina.dev/congestion-observed-at": "2026-03-01T11:00:00Z"}
    )

    assert {"n1": {"congestion-factor": 100}} == plain(await values.values({"n1": node}, NOON))


async def test_nodes_without_any_part_have_no_factor_and_that_is_remarked():
    values = congested(N1)

    assert {} == await values.values({"n1": N1}, NOON)
    assert "returned no series" in values.remark


async def test_a_server_of_another_time_is_not_believed():
    values = congested(N1, at=NOON - 301, disk=1.0)

    assert {} == await values.values({"n1": N1}, NOON)
    assert "from ours by more than 300 s" in values.remark


async def test_a_failure_is_the_sources():
    server = ScriptedPrometheus({})
    server.failure = PrometheusError("p", "unreachable", "no connection")
    with pytest.raises(PrometheusError):
        await CongestionValues(server).values({"n1": N1}, NOON)


def test_only_devices_of_the_nodes_own_are_looked_at_and_matchers_hold_everywhere():
    asked = dict(expressions(Queries(matchers='c="x"', rate=60.0)))

    assert ["cpu", "memory", "io", "network", "disk"] == list(asked)
    assert all('c="x"' in one for one in asked.values())
    assert (
        f'rate(node_network_transmit_bytes_total{{{CARDS},c="x"}}[60s]) / (node_network_speed_bytes{{{CARDS},c="x"}} > 0)'
    ) in asked["network"]


@pytest.mark.parametrize(
    ("devices", "cards"),
    [
        pytest.param("eth0 eth1.100 em1 p4p1 p2p1_0", True, id="plain names"),
        pytest.param("eno1 ens5 ens1f0np0 enp0s31f6 enP2p1s0 enX0 end0 enx001122334455 env2", True, id="systemd's"),
        pytest.param("ib0 ibp65s0 wlan0 wlp3s0 bond0 bond0.12 team0", True, id="other kinds"),
        pytest.param(
            "lo dummy0 ifb0 wg0 tun0 tap0 vnet0 virbr0 br0 br-1a2b3c docker0 podman0 nerdctl0", False, id="host"
        ),
        pytest.param(
            "veth1a2b3c cali1a2b cni0 cbr0 lxc1a2b lxdbr0 flannel.1 kube-ipvs0 nodelocaldns", False, id="pods"
        ),
        pytest.param("eni1a2b3c4d5e6 enic1 azv0123 gke52ef1a2b", False, id="clouds"),
        pytest.param("cilium_host cilium_vxlan vxlan.calico vxlan-v6.calico tunl0 ip6tnl0", False, id="tunnels"),
        pytest.param(
            "weave vethwe-bridge datapath ovs-system antrea-gw0 genev_sys_6081 ovn-k8s-mp0", False, id="bridges"
        ),
        pytest.param(
            "envoy-fd-1a2b3c ens-api-1a2b3c ethers-1a2b3c ibm-1a2b3c bonds-a1 team-a-1b2c", False, id="Antrea"
        ),
    ],
)
def test_only_names_of_real_cards_are_looked_at(devices, cards):
    # Prometheus anchors a pattern at both ends.
    pattern = re.compile(CARDS.partition('"')[2].rpartition('"')[0])

    assert dict.fromkeys(devices.split(), cards) == {one: bool(pattern.fullmatch(one)) for one in devices.split()}
