"""Evictions against an API server in every mood: done once, answered if they fail, after the nomination."""

import logging

import pytest

from lamina.model.events import EvictFailed
from lamina.scheduling.contract.commands import Evict, Nominate
from lamina.services.scheduler.preemption_writer import TRIES
from lamina.testing import a_pod
from tests.unit.services.fakes import LOST, ScriptedClient, refused
from tests.unit.services.scheduler.test_executor import Bench


@pytest.mark.parametrize(
    ("script", "asked"),
    [
        pytest.param([refused(429), b"{}", b"{}"], ["PATCH status"] * 2 + ["DELETE victim"], id="too many requests"),
        pytest.param(
            [b"{}", refused(503), b"{}", b"{}"],
            ["PATCH status", "DELETE victim"] * 2,
            id="in trouble between the two writes",
        ),
        pytest.param([LOST, b"{}", b"{}"], ["PATCH status"] * 2 + ["DELETE victim"], id="lost"),
    ],
)
def test_an_eviction_is_tried_again_after_trouble_that_passes(script, asked):
    bench = Bench(ScriptedClient(*script)).do(Evict(a_pod("victim"), a_pod(), "n1"))

    assert asked == bench.client.short
    assert [] == bench.ear.events
    assert [("preempted", "victim", "p1", "n1")] == bench.ear.heard


@pytest.mark.parametrize("script", [[refused(404)], [b"{}", refused(404)]], ids=["before", "between the writes"])
def test_a_victim_that_is_gone_already_counts_as_evicted(script):
    bench = Bench(ScriptedClient(*script)).do(Evict(a_pod("victim"), a_pod(), "n1"))

    assert [] == bench.ear.events
    assert [] == bench.ear.heard


@pytest.mark.parametrize(
    ("trouble", "requests", "forbidden"),
    [
        pytest.param(refused(500), TRIES, False, id="in trouble for long"),
        pytest.param(LOST, TRIES, False, id="lost for long"),
        pytest.param(refused(400), 1, False, id="rejected"),
        pytest.param(refused(403), 1, True, id="forbidden"),
    ],
)
def test_an_eviction_that_fails_is_answered(trouble, requests, forbidden):
    bench = Bench(ScriptedClient(then=trouble)).do(Evict(a_pod("victim"), a_pod(), "n1"))

    assert ["PATCH status"] * requests == bench.client.short
    assert EvictFailed("victim", "p1", str(trouble), forbidden) == bench.answer


def test_a_missing_permission_is_logged_once_with_what_to_do(caplog):
    evictions = [Evict(a_pod(name), a_pod(), "n1") for name in ("v1", "v2", "v3")]
    with caplog.at_level(logging.WARNING):
        bench = Bench(ScriptedClient(then=refused(403))).do(*evictions)

    assert 3 == len(bench.ear.events)
    (line,) = [one for one in caplog.messages if "forbidden" in one]
    assert "deploy/rbac/optional/scheduler-preemption.yaml" in line


def test_writes_about_one_preemptor_are_sent_in_the_order_of_the_commands():
    pod = a_pod(priority=1)
    commands = [Nominate(pod, "n1"), Evict(a_pod("victim"), pod, "n1"), Nominate(pod, "n2")]
    bench = Bench(ScriptedClient(pause=1.0)).do(*commands)

    paths = [f"{one.method} {one.path.removeprefix('/api/v1/namespaces/default/pods/')}" for one in bench.client.asked]
    assert "PATCH p1/status" == paths[0]
    assert bench.client.asked[0].at < min(one.at for one in bench.client.asked[1:])
    assert 2 == paths.count("PATCH p1/status")
    assert paths.index("PATCH victim/status") < paths.index("DELETE victim")
