"""What comes from outside: machines that become unavailable, nodes of the scenario, and events of the user's own types."""

import json

import pytest

from lamina.apiserver.batsim.batsim_run import check_events
from lamina.model.errors import InputError
from lamina.simulator.batsim.batsim_settings import BatsimSettings
from lamina.simulator.run.batsim_files import jobs
from lamina.simulator.workloads import load_scenario
from tests.unit.simulator.batsim.harness import LowestFirst, a_story, execute, never, play, submitted

DOWN, UP = "event_machine_unavailable", "event_machine_available"
NO_MORE = {"type": "no_more_external_event_to_occur"}


def unavailable(at, resources, **more):
    return {"type": "machine_unavailable", "resources": resources, "timestamp": at, **more}


def available(at, resources):
    return {"type": "machine_available", "resources": resources, "timestamp": at}


def notices(peer):
    return [(at, data["type"], data.get("resources")) for at, kind, data in peer.log if kind == "NOTIFY"]


def test_machines_become_unavailable_and_jobs_on_them_keep_running(tmp_path):
    scenario = a_story(tmp_path, {}, events=[available(8, "0 2-3"), unavailable(3, "0-3")])

    result, peer, _ = play(scenario, LowestFirst(4))

    assert [
        (0.0, "no_more_static_job_to_submit", None),
        (3.0, DOWN, "0-3"),
        (8.0, UP, "0 2-3"),
        (8.0, "no_more_external_event_to_occur", None),
    ] == notices(peer)
    assert 10.0 == jobs(result, scenario)[0].ended


def test_a_job_cannot_be_executed_on_an_unavailable_machine(tmp_path):
    scenario = a_story(tmp_path, {"subtime": 5}, events=[unavailable(3, "1")])

    result, _, _ = play(scenario, lambda message: [execute(one, "1") for one in submitted(message)])

    assert "reply 3 at 5 s: alloc: resource 1 (h2) is unavailable" == result.stopped


def test_the_same_events_cordon_nodes_for_every_scheduler(tmp_path):
    scenario = a_story(tmp_path, {}, events=[unavailable(3, "0 2"), available(5, "2")])

    assert [("cordon", 3.0, "h1"), ("cordon", 3.0, "h3"), ("uncordon", 5.0, "h3")] == [
        (event.kind, event.at, event.name) for event in scenario.events
    ]


def test_generic_events_of_version_5_say_the_same_as_text(tmp_path):
    said = {"type": "generic", "timestamp": 3, "data": json.dumps({"type": "machine_unavailable", "resources": "1"})}
    scenario = a_story(tmp_path, {}, events=[said])

    _, peer, _ = play(scenario, LowestFirst(4))

    assert (3.0, DOWN, "1") in notices(peer)


def test_events_of_other_types_are_passed_on_as_they_are(tmp_path):
    price = {"type": "price", "timestamp": 4.0, "euro": 0.3}
    scenario = a_story(tmp_path, {}, events=[price, {"type": "generic", "timestamp": 5.0, "data": "hello"}])

    _, peer, _ = play(scenario, LowestFirst(4), BatsimSettings(forward_unknown_events=True))

    assert [(4.0, "NOTIFY", price)] == [one for one in peer.log if one[0] == 4.0]
    assert [(5.0, "NOTIFY", {"type": "generic", "timestamp": 5.0, "data": "hello"}), (5.0, "NOTIFY", NO_MORE)] == [
        one for one in peer.log if one[0] == 5.0
    ]


def test_events_that_only_the_scheduler_may_know_need_the_setting(tmp_path):
    scenario = a_story(tmp_path, {}, events=[{"type": "price", "timestamp": 4.0}])

    with pytest.raises(
        InputError, match=r"--batsim: 1 external events of story have types .* add forward-unknown-events"
    ):
        check_events(scenario, BatsimSettings())
    check_events(scenario, BatsimSettings(forward_unknown_events=True))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        pytest.param("{", "events.jsonl:1: Input data was truncated", id="cut short"),
        pytest.param(
            '{"type": "machine_available", "timestamp": 1}',
            "resources: says not which machines; add resources",
            id="no machines",
        ),
        pytest.param(
            '{"type": "machine_available", "resources": "x", "timestamp": 1}', "'x' is no interval", id="no interval"
        ),
        pytest.param('{"timestamp": 1}', "Object missing required field `type`", id="no type"),
        pytest.param('{"type": "x", "timestamp": -1}', "timestamp: Expected `float` >= 0", id="before the start"),
        pytest.param(
            '{"type": "machine_available", "resources": "4", "timestamp": 1}',
            "externalEvents: names machine 4 on line 1, and there are 4 nodes",
            id="unknown machine",
        ),
    ],
)
def test_wrong_events_are_reported_with_file_and_line(tmp_path, line, told):
    a_story(tmp_path, {}, events=[unavailable(1, "0")])
    (tmp_path / "events.jsonl").write_text(line)

    with pytest.raises(InputError) as caught:
        load_scenario(tmp_path / "scenario.yaml")

    assert told in str(caught.value)


def test_nodes_that_fail_leave_or_join_are_machines_that_change(tmp_path):
    more = """
events:
- {at: 2s, drop: h2}
- {at: 3s, cordon: h3}
- {at: 4s, uncordon: h3}
- {at: 5s, join: {name: late, cpu: 1, memory: 4Gi, holds: [app]}}
- {at: 6s, fail: h1}
- {at: 100s, recover: h1}
until: 200s
"""
    scenario = a_story(tmp_path, {"subtime": 110}, hosts=3, more=more)

    result, peer, _ = play(scenario, lambda message: [execute(one, "3") for one in submitted(message)])

    assert ["h1", "h2", "h3", "late"] == [
        one["name"] for one in peer.heard[0]["events"][0]["data"]["compute_resources"]
    ]
    assert [
        (0.0, DOWN, "3"),
        (2.0, DOWN, "1"),
        (3.0, DOWN, "2"),
        (4.0, UP, "2"),
        (5.0, UP, "3"),
        (46.0, DOWN, "0"),
        (100.0, UP, "0"),
    ] == [one for one in notices(peer) if one[1] in (DOWN, UP)]
    assert "late" == result.pods[0].node


def test_a_run_waits_for_the_last_external_event(tmp_path):
    scenario = a_story(tmp_path, {}, events=[unavailable(30, "0"), available(50, "0")])

    _, peer, _ = play(scenario, LowestFirst(4))

    assert (50.0, "SIMULATION_ENDS", {}) == peer.log[-1]


def test_a_scheduler_that_ignores_everything_gets_all_notices(tmp_path):
    scenario = a_story(tmp_path, {}, events=[unavailable(3, "0")])

    result, peer, _ = play(scenario, never)

    assert (3.0, DOWN, "0") in notices(peer)
    assert result.stopped.startswith("deadlock")
