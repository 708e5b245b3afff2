"""Replies that break the protocol: one clear line, and what was done before is kept."""

import json

import pytest

from lamina.simulator.batsim import batsim_decider, scheduler_actions
from lamina.simulator.batsim.batsim_settings import BatsimSettings
from lamina.simulator.run.batsim_files import jobs
from tests.unit.simulator.batsim.harness import a_story, execute, play, submitted


def message(now, *events):
    return json.dumps({"now": now, "events": list(events)}).encode()


def event(at, kind, **data):
    return {"timestamp": at, "type": kind, "data": data}


REPLIES = [
    pytest.param(b"", "is not JSON: Input data was truncated; it begins with ''", id="nothing"),
    pytest.param(b"{now:", "is not JSON: JSON is malformed: object keys must be strings (byte 1)", id="bad JSON"),
    pytest.param(b"\xff\xfe", "is not JSON: JSON is malformed: invalid character (byte 0)", id="not text"),
    pytest.param(b"[" * 100_000, "Expected `object`, got `array`", id="nested too deep"),
    pytest.param(b"[]", "Expected `object`, got `array`", id="a list"),
    pytest.param(b'{"events":[]}', "Object missing required field `now`", id="no time"),
    pytest.param(b'{"now":10}', "Object missing required field `events`", id="no events"),
    pytest.param(b'{"now":"10","events":[]}', "now: Expected `float`, got `str`", id="time as text"),
    pytest.param(b'{"now":1e999,"events":[]}', "now: Number out of range", id="infinite time"),
    pytest.param(message(9.0), "now: 9 goes back in time; it was 10 before", id="time goes back"),
    pytest.param(message(1e12), "now: 1e+12 is too far from the request's 10", id="time far ahead"),
    pytest.param(
        message(10.0, event(11.0, "REJECT_JOB", job_id="w0!1")),
        "events[0].timestamp: 11 is after now, which is 10",
        id="event after its message",
    ),
    pytest.param(
        message(12.0, event(9.0, "REJECT_JOB", job_id="w0!1")),
        "events[0].timestamp: 9 is before the request's 10",
        id="event before the request",
    ),
    pytest.param(
        message(12.0, event(12.0, "REJECT_JOB", job_id="w0!1"), event(11.0, "REJECT_JOB", job_id="w0!1")),
        "events[1].timestamp: 11 is before the previous event's 12",
        id="events out of order",
    ),
    pytest.param(message(10.0, event(10.0, "EXECUTE")), "events[0].type: Invalid value 'EXECUTE'", id="unknown event"),
    pytest.param(
        message(10.0, event(10.0, "EXECUTE_JOB", job_id="w0!1")),
        "events[0].data: Object missing required field `alloc`",
        id="no allocation",
    ),
    pytest.param(
        message(10.0, event(10.0, "EXECUTE_JOB", job_id=1, alloc="0")),
        "events[0].data.job_id: Expected `str`, got `int`",
        id="job as a number",
    ),
    pytest.param(
        message(10.0, event(10.0, "EXECUTE_JOB", job_id="w0!11", alloc="0")),
        "job_id: there is no job 'w0!11'; did you mean 'w0!1'?",
        id="unknown job",
    ),
    pytest.param(
        message(10.0, event(10.0, "EXECUTE_JOB", job_id="w0!0", alloc="0")),
        "job_id: 'w0!0' cannot be executed: its state is COMPLETED_SUCCESSFULLY",
        id="a job that has ended",
    ),
    pytest.param(
        message(
            10.0,
            event(10.0, "EXECUTE_JOB", job_id="w0!1", alloc="0"),
            event(10.0, "EXECUTE_JOB", job_id="w0!1", alloc="1"),
        ),
        "job_id: 'w0!1' cannot be executed: its state is RUNNING",
        id="double execution",
    ),
    pytest.param(
        message(
            10.0,
            event(10.0, "EXECUTE_JOB", job_id="w0!1", alloc="0"),
            event(10.0, "EXECUTE_JOB", job_id="w0!2", alloc="0-1"),
        ),
        "alloc: resource 0 (h1) runs 'w0!1', so 'w0!2' cannot; allow sharing with compute-sharing",
        id="a host that is busy",
    ),
    pytest.param(
        message(10.0, event(10.0, "EXECUTE_JOB", job_id="w0!2", alloc="0")),
        "alloc: 'w0!2' needs 2 resources and got 1",
        id="too few resources",
    ),
    pytest.param(
        message(10.0, event(10.0, "EXECUTE_JOB", job_id="w0!1", alloc="7")),
        "alloc: there is no resource 7; the last one is 3",
        id="unknown resource",
    ),
    pytest.param(
        message(10.0, event(10.0, "EXECUTE_JOB", job_id="w0!1", alloc="one")),
        "alloc: 'one' is no interval",
        id="an allocation in words",
    ),
    pytest.param(
        message(10.0, event(10.0, "EXECUTE_JOB", job_id="w0!2", alloc="0-1", mapping={"0": "0", "1": "5"})),
        "mapping: send one that maps each executor from 0 to 1 to a position in the allocation",
        id="a mapping beyond the allocation",
    ),
    pytest.param(
        message(10.0, event(10.0, "KILL_JOB", job_ids=["w0!1"])),
        "job_ids: 'w0!1' cannot be killed: its state is SUBMITTED",
        id="killing a waiting job",
    ),
    pytest.param(
        message(10.0, event(10.0, "REJECT_JOB", job_id="w0!0")),
        "job_id: 'w0!0' cannot be rejected: its state is COMPLETED_SUCCESSFULLY",
        id="rejecting a job that has ended",
    ),
    pytest.param(
        message(10.0, event(10.0, "CALL_ME_LATER", timestamp=9.5)),
        "data.timestamp: 9.5 is in the past; the event is at 10",
        id="a call in the past",
    ),
    pytest.param(
        message(10.0, event(10.0, "CALL_ME_LATER", timestamp=1e300)),
        "data.timestamp: 1e+300 is too far away",
        id="a call that never comes",
    ),
    pytest.param(
        message(10.0, event(10.0, "REGISTER_JOB", job_id="dyn!1", job={"id": "dyn!1", "res": 1, "profile": "short"})),
        "registering is not enabled; start the run with dynamic-jobs",
        id="a job that may not be registered",
    ),
    pytest.param(
        message(10.0, event(10.0, "QUERY", requests={"air_temperature_all": {}})),
        "data.requests: 'air_temperature_all' cannot be answered; ask for consumed_energy",
        id="an unknown question",
    ),
    pytest.param(
        message(10.0, event(10.0, "NOTIFY", type="lunch")),
        "data.type: 'lunch' means nothing here; send registration_finished or continue_registration",
        id="an unknown notification",
    ),
    pytest.param(
        message(10.0, event(10.0, "ANSWER", consumed_energy=1.0)),
        "answers a question that was not asked",
        id="an answer without a question",
    ),
    pytest.param(
        message(10.0, event(10.0, "SET_RESOURCE_STATE", resources="0", state="1")),
        "power states, and states of jobs that are not executed, are not simulated",
        id="a power state",
    ),
    pytest.param(b" " * (10 * 1024**2), "is 10485760 bytes long; at most 8388608 are read", id="ten megabytes"),
    pytest.param(
        message(10.0, event(10.0, "REJECT_JOB", job_id="\x1b[31m\nw0")),
        "job_id: there is no job '\\x1b[31m\\nw0'",
        id="control characters",
    ),
]


@pytest.mark.parametrize(("reply", "told"), REPLIES)
def test_an_invalid_reply_ends_the_run_with_one_line_and_keeps_what_was_done(tmp_path, reply, told):
    scenario = a_story(tmp_path, {}, {"subtime": 10}, {"subtime": 10, "res": 2})

    def decide(message):
        return [execute("w0!0", "0")] if "w0!0" in submitted(message) else reply if message["now"] >= 10.0 else []

    result, _, _ = play(scenario, decide)

    assert result.stopped.startswith(f"reply 3 at 10 s: {told}"), result.stopped
    assert result.stopped.isprintable()
    assert ("COMPLETED_SUCCESSFULLY", 10.0) == (jobs(result, scenario)[0].state, jobs(result, scenario)[0].ended)


def test_a_decision_of_a_later_time_is_checked_then(tmp_path):
    scenario = a_story(tmp_path, {}, {"subtime": 5})

    def decide(message):
        return [execute("w0!0", "0"), execute("w0!0", "1", 7.0)] if "w0!0" in submitted(message) else []

    result, _, _ = play(scenario, decide)

    assert "reply 2 at 7 s: job_id: 'w0!0' cannot be executed: its state is RUNNING" == result.stopped


def test_a_scheduler_that_never_lets_time_pass_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(batsim_decider, "MOST_AT_ONE_TIME", 20)
    scenario = a_story(tmp_path, {})

    result, peer, _ = play(scenario, lambda message: [("QUERY", {"requests": {"consumed_energy": {}}})])

    assert "more than 20 messages at 0 s: time does not move on" in result.stopped
    assert 22 >= len(peer.heard)


def test_a_scheduler_that_asks_for_calls_for_ever_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(batsim_decider, "MOST_AT_ONE_TIME", 20)
    scenario = a_story(tmp_path, {})

    result, _, _ = play(scenario, lambda message: [("CALL_ME_LATER", {"timestamp": message["now"] + 60})])

    assert "the last 20 calls changed nothing, and nothing else can happen" in result.stopped


def test_pending_calls_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(scheduler_actions, "MOST_CALLS", 3)
    scenario = a_story(tmp_path, {})

    result, _, _ = play(scenario, lambda _: [("CALL_ME_LATER", {"timestamp": 50.0})] * 4)

    assert "more than 3 calls are pending" in result.stopped


def test_metadata_is_bounded(tmp_path):
    scenario = a_story(tmp_path, {})

    def decide(message):
        return [("SET_JOB_METADATA", {"job_id": one, "metadata": "x" * 5000}) for one in submitted(message)]

    result, _, _ = play(scenario, decide, BatsimSettings())

    assert "metadata: longer than 4096 characters" in result.stopped
