"""One look at a Prometheus server: units, the window, who is left out, and what is said about it."""

import msgspec
import pytest

from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.services.informers.usage.prometheus import PrometheusUsage
from lamina.services.informers.usage.queries import Forecast, Queries
from lamina.testing import a_node
from tests.unit.services.informers.usage.scripted import NOON, ScriptedPrometheus

N1, N2 = {"instance": "10.0.0.1:9100"}, {"node": "n2"}
NODES = {"n1": a_node("n1", addresses=["10.0.0.1"]), "n2": a_node("n2")}
ONE = {"n1": NODES["n1"]}
PLAIN = {"cpu": "cores", "memory": "bytes"}
HOUR = {"cores": [(N1, [1.0, 2.0] * 15), (N2, [0.25] * 10)], "bytes": [(N1, [4e9] * 30), (N2, [2e9] * 10)]}


async def look(curves=HOUR, nodes=NODES, table=None, **more):
    server = ScriptedPrometheus(table or {}, curves, warnings=more.pop("warnings", ()))
    source = PrometheusUsage(server, Queries(**{**PLAIN, **more}))
    return list(await source.look(nodes)), source.remark, server


async def test_cores_become_thousandths_and_the_window_ends_when_the_server_answered():
    usages, remark, server = await look()

    # n2 has 10 numbers, 30 s apart: its window began 300 s ago, not 900.
    assert [
        NodeUsage("n1", ResourceUsage(1500.0, 500.0), ResourceUsage(4e9, 0.0), NOON - 900, NOON, 30.0),
        NodeUsage("n2", ResourceUsage(250.0, 0.0), ResourceUsage(2e9, 0.0), NOON - 300, NOON, 30.0),
    ] == usages
    assert "" == remark
    # Thirty numbers, the last of them of now.
    assert [(NOON - 870, NOON, 30.0)] * 2 == server.ranges
    assert 3 == len(server.asked)


@pytest.mark.parametrize("late", [0.0, 0.1, 15.0, 29.9])
async def test_a_window_ends_at_a_whole_step_where_servers_that_keep_answers_would_end_it_anyway(late):
    server = ScriptedPrometheus({}, HOUR, at=NOON + late)
    usages = list(await PrometheusUsage(server, Queries(**PLAIN)).look(NODES))

    assert [(NOON - 900, NOON), (NOON - 300, NOON)] == [(one.since, one.until) for one in usages]
    assert [(NOON - 870, NOON, 30.0)] * 2 == server.ranges


async def test_each_resource_may_name_nodes_by_labels_of_its_own():
    """
    As with a recording rule for one of them that has summed some labels away.
    """
    named = {"node": "n1", "instance": "10.0.0.1:9100"}
    usages, remark, _ = await look({"cores": [(N1, [3.9] * 30)], "bytes": [(named, [4e9] * 20)]}, ONE)

    assert [NodeUsage("n1", ResourceUsage(3900.0, 0.0), ResourceUsage(4e9, 0.0), NOON - 900, NOON, 30.0)] == [
        msgspec.structs.replace(one, cpu=ResourceUsage(round(one.cpu.mean, 6), round(one.cpu.deviation, 6)))
        for one in usages
    ]
    assert "" == remark


async def test_nodes_that_are_known_by_half_are_remarked():
    elsewhere = {"node": "far away"}
    curves = {"cores": [*HOUR["cores"]], "bytes": [(N1, [4e9] * 30), (elsewhere, [1.0] * 30)]}
    usages, remark, _ = await look(curves)

    assert ["n1", "n2"] == [one.node for one in usages]
    assert 'memory is unknown for n2; series without a node: node="far away"' == remark


async def test_a_straight_line_goes_on_and_never_below_nothing():
    rising = [(N1, [float(n) for n in range(30)])]
    falling = [(N1, [float(30 - n) for n in range(30)])]
    curves = {"cores": rising, "bytes": falling}
    usages, _, _ = await look(curves, ONE, forecast=Forecast(method="linear", horizon=600.0))

    # One more every 30 seconds: 20 more in ten minutes, from 29 on; and 20 less from 1 on.
    assert [(49_000.0, 0.0)] == [(round(one.cpu.forecast, 6), one.memory.forecast) for one in usages]


async def test_a_season_ago_is_asked_of_the_server_and_may_be_lacking():
    table = {"offset 85800s": [(N1, 3.0)]}
    usages, _, server = await look(table=table, forecast=Forecast())

    assert [(3000.0, 3.0), (None, None)] == [(one.cpu.forecast, one.memory.forecast) for one in usages]
    assert 5 == len(server.asked)


async def test_a_node_that_fell_silent_is_not_told_of_however_good_its_mean():
    silent = [(N1, [1.0] * 29 + [None]), (N2, [1.0] * 30)]
    usages, remark, _ = await look({"cores": silent, "bytes": silent})

    assert ["n2"] == [one.node for one in usages]
    assert "1 of 2 nodes are measured; no series for n1" == remark


async def test_too_few_samples_are_no_usage_yet():
    few = [(N1, [1.0] * 3), (N2, [1.0] * 2)]
    usages, remark, _ = await look({"cores": few, "bytes": few})

    assert (["n1"], "too few samples yet for n2") == ([one.node for one in usages], remark)


async def test_one_resource_alone_is_told_of_alone():
    usages, _, _ = await look({"cores": HOUR["cores"]}, ONE)

    assert [(True, None)] == [(one.cpu is not None, one.memory) for one in usages]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
async def test_what_is_no_number_is_left_out(value):
    usages, _, _ = await look({"cores": [(N1, [1.0, value, 1.0, 1.0])]}, ONE)
    assert [ResourceUsage(1000.0, 0.0)] == [one.cpu for one in usages]

    usages, _, _ = await look({"cores": [(N1, [1.0, 1.0, 1.0, value])]}, ONE)
    assert [] == usages


async def test_names_of_machines_are_asked_for_only_if_something_does_not_fit():
    odd = {"instance": "172.16.0.9:9100"}
    table = {"node_uname_info": [({**odd, "nodename": "n1"}, 1.0)]}
    usages, remark, server = await look({"cores": [(odd, [1.0] * 5)]}, ONE, table)
    assert (["n1"], "memory is unknown for n1") == ([one.node for one in usages], remark)
    assert 1 == sum("node_uname_info" in query for query in server.asked)

    _, _, quiet = await look()
    assert not any("node_uname_info" in query for query in quiet.asked)


async def test_an_address_with_two_names_has_none():
    odd = {"instance": "172.16.0.9:9100"}
    table = {"node_uname_info": [({**odd, "nodename": name}, 1.0) for name in ("n1", "n2")]}
    usages, _, _ = await look({"cores": [(odd, [1.0] * 5)]}, ONE, table)

    assert [] == usages


async def test_no_series_and_warnings_are_remarked():
    usages, remark, _ = await look({})
    assert ([], True) == (usages, remark.startswith("the queries returned no series"))

    _, remark, _ = await look(warnings=("a store\nis down",))
    assert "the server warns: a store is down" == remark


async def test_nothing_is_wanted_where_there_are_no_nodes():
    assert ([], "") == (await look(nodes={}))[:2]
