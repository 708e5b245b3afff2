"""Runs under a decision process: which messages it gets, when, and what its answers do."""

import pytest

from lamina.simulator.batsim.batsim_settings import BatsimSettings
from lamina.simulator.run.batsim_files import JobNotes, jobs
from tests.unit.simulator.batsim.harness import LowestFirst, a_delay, a_story, execute, never, play, submitted

NO_MORE = {"type": "no_more_static_job_to_submit"}


def states(result, scenario, notes=None):
    return {one.job.job: (one.state, one.started, one.ended) for one in jobs(result, scenario, notes or JobNotes())}


def test_a_job_is_reported_executed_completed_and_the_simulation_ends(tmp_path):
    scenario = a_story(tmp_path, {"subtime": 5, "res": 2})

    result, peer, _ = play(scenario, lambda message: [execute(one, "1-2") for one in submitted(message)])

    assert [
        (5.0, "JOB_SUBMITTED", "w0!0"),
        (5.0, "NOTIFY", NO_MORE),
        (15.0, "JOB_COMPLETED", "w0!0"),
        (15.0, "SIMULATION_ENDS", {}),
    ] == peer.log
    assert {"0": ("COMPLETED_SUCCESSFULLY", 5.0, 15.0)} == states(result, scenario)
    assert ["h2", "h3"] == [pod.node for pod in result.pods]
    assert "" == result.stopped


def test_the_first_message_describes_platform_and_workloads_and_nothing_else(tmp_path):
    scenario = a_story(tmp_path, {}, hosts=2, cpu=3)

    _, peer, _ = play(scenario, LowestFirst(2), BatsimSettings(sched_config="deep"))

    (begins,) = peer.heard[0]["events"]
    data = begins["data"]
    assert (0.0, 2, 2, 0, False) == (
        peer.heard[0]["now"],
        data["nb_resources"],
        data["nb_compute_resources"],
        data["nb_storage_resources"],
        data["allow_compute_sharing"],
    )
    assert {
        "id": 1,
        "name": "h2",
        "state": "idle",
        "properties": {"cpu": "3", "memory": "4Gi", "pods": "110", "core": "3"},
        "zone_properties": {},
    } == data["compute_resources"][1]
    assert {"w0": {"short": {"type": "delay", "delay": 10.0}}} == data["profiles"]
    assert "deep" == data["config"]["sched-config"]
    # Keys that PyBatsim reads without a default.
    assert {"profiles-forwarded-on-submission", "dynamic-jobs-enabled", "dynamic-jobs-acknowledged"} < set(
        data["config"]
    )


def test_a_job_is_passed_on_with_the_fields_of_its_author(tmp_path):
    scenario = a_story(tmp_path, {"res": 2, "walltime": 12.5, "queue": "long", "subtime": 1.5})

    _, peer, _ = play(scenario, LowestFirst(4))

    (job,) = [event["data"]["job"] for event in peer.heard[1]["events"] if event["type"] == "JOB_SUBMITTED"]
    assert {
        "id": "w0!0",
        "profile": "short",
        "res": 2,
        "subtime": 1.5,
        "walltime": 12.5,
        "queue": "long",
        "kubernetes": {"pod": "default/w0-0-1", "requests": {"cpu": "1"}, "images": ["app"]},
    } == job


def test_profiles_of_version_5_get_the_names_of_version_4(tmp_path):
    profiles = {
        "short": {"type": "DelayProfile", "delay": 3.0, "command": "sleep"},
        "spread": {
            "type": "ParallelTaskHomogeneousProfile",
            "cpu": 1e6,
            "com": 0,
            "generation_strategy": "DefinedAmountsSpreadUniformly",
        },
    }
    scenario = a_story(tmp_path, {}, profiles=profiles)

    _, peer, _ = play(scenario, LowestFirst(4), BatsimSettings(forward_profiles=True))

    known = peer.heard[0]["events"][0]["data"]["profiles"]["w0"]
    assert {"type": "delay", "delay": 3.0, "command": "sleep"} == known["short"]
    assert "parallel_homogeneous_total" == known["spread"]["type"]
    assert known["short"] == peer.heard[1]["events"][0]["data"]["profile"]


def test_a_pod_without_a_job_is_a_job_of_its_own(tmp_path):
    more = (
        "pods: [{name: web, image: app, at: 2s, duration: 30s, cpu: 500m}, {name: svc, image: app, at: 3s}]\nuntil: 60s"
    )
    scenario = a_story(tmp_path, {}, more=more)

    result, peer, _ = play(scenario, LowestFirst(4))

    jobs = [event["data"]["job"] for message in peer.heard for event in message["events"] if "job" in event["data"]]
    assert [("w0!0", "short", 1), ("pods!1", "delay30.0", 1), ("pods!2", "endless", 1)] == [
        (job["id"], job["profile"], job["res"]) for job in jobs
    ]
    assert {"cpu": "500m"} == jobs[1]["kubernetes"]["requests"]
    known = peer.heard[0]["events"][0]["data"]["profiles"]["pods"]
    assert {"delay30.0": {"type": "delay", "delay": 30.0}, "endless": {"type": "delay", "delay": 315360000.0}} == known
    # The service runs on; the end of the run ends the simulation.
    assert (60.0, "SIMULATION_ENDS", {}) == peer.log[-1]
    assert "running" == result.pods[2].phase


@pytest.mark.parametrize(
    ("job", "profile", "state", "code"),
    [
        pytest.param({}, a_delay(10.0), "COMPLETED_SUCCESSFULLY", 0, id="success"),
        pytest.param({"walltime": 4.5}, a_delay(10.0), "COMPLETED_WALLTIME_REACHED", -1, id="walltime"),
        pytest.param({}, a_delay(10.0, ret=3), "COMPLETED_FAILED", 3, id="exit code of the profile"),
    ],
)
def test_a_completed_job_says_how_it_ended(tmp_path, job, profile, state, code):
    scenario = a_story(tmp_path, {"res": 3, **job}, profiles={"short": profile})

    result, peer, _ = play(scenario, LowestFirst(4))

    (data,) = [one["data"] for message in peer.heard for one in message["events"] if one["type"] == "JOB_COMPLETED"]
    assert {"job_id": "w0!0", "job_state": state, "return_code": code, "alloc": "0-2"} == data
    assert state == jobs(result, scenario)[0].state


def test_a_job_whose_pod_is_rejected_by_its_node_fails_as_a_whole(tmp_path):
    scenario = a_story(tmp_path, {"res": 2}, {}, hosts=2, cpu=1)

    # Sharing is allowed, and the second job does not fit beside the first.
    _, peer, _ = play(
        scenario,
        lambda message: [execute(one, "0-1" if one == "w0!0" else "0") for one in submitted(message)],
        BatsimSettings(compute_sharing=True),
    )

    ended = [one["data"] for message in peer.heard for one in message["events"] if one["type"] == "JOB_COMPLETED"]
    assert [("w0!1", "COMPLETED_FAILED"), ("w0!0", "COMPLETED_SUCCESSFULLY")] == [
        (one["job_id"], one["job_state"]) for one in ended
    ]


def test_decisions_are_made_at_the_times_that_the_reply_states(tmp_path):
    """The example of Batsim's page on time dilation: decisions at 13 and 14, finished at 15."""
    scenario = a_story(tmp_path, {}, {"subtime": 1}, {"subtime": 1}, {"subtime": 12}, profiles={"short": a_delay(3.1)})

    def decide(message):
        jobs = submitted(message)
        if "w0!0" in jobs:
            return [execute("w0!0", "3", 10.0)]
        if "w0!1" in jobs:
            return {"now": 15.0, "events": [event(13.0, "w0!1", "0"), event(14.0, "w0!2", "1")]}
        return [execute(one, "2") for one in jobs]

    def event(at, job, alloc):
        return {"timestamp": at, "type": "EXECUTE_JOB", "data": {"job_id": job, "alloc": alloc}}

    result, peer, _ = play(scenario, decide)

    assert {"0": 10.0, "1": 13.0, "2": 14.0, "3": 15.0} == {one.job.job: one.started for one in jobs(result, scenario)}
    # What happens while it is busy waits until it has finished, and keeps its own time.
    (late,) = [message for message in peer.heard if message["now"] == 15.0]
    assert [(12.0, "JOB_SUBMITTED"), (12.0, "NOTIFY"), (13.1, "JOB_COMPLETED")] == [
        (one["timestamp"], one["type"]) for one in late["events"]
    ]


def test_a_requested_call_comes_in_time_and_keeps_the_simulation_alive(tmp_path):
    scenario = a_story(tmp_path, {})

    def decide(message):
        later = [("CALL_ME_LATER", {"timestamp": 99.5})] if submitted(message) else []
        return [execute(one, "0") for one in submitted(message)] + later

    _, peer, _ = play(scenario, decide)

    assert [(10.0, "JOB_COMPLETED", "w0!0"), (99.5, "REQUESTED_CALL", {}), (99.5, "SIMULATION_ENDS", {})] == peer.log[
        2:
    ]


def test_a_rejected_job_is_over(tmp_path):
    scenario = a_story(tmp_path, {"res": 2})

    result, peer, _ = play(scenario, lambda message: [("REJECT_JOB", {"job_id": one}) for one in submitted(message)])

    assert [(0.0, "JOB_SUBMITTED", "w0!0"), (0.0, "NOTIFY", NO_MORE), (0.0, "SIMULATION_ENDS", {})] == peer.log
    assert {"0": ("REJECTED", None, 0.0)} == states(result, scenario)


def test_killed_jobs_are_completed_first_and_then_acknowledged_with_their_progress(tmp_path):
    scenario = a_story(tmp_path, {"res": 2}, {"profile": "long"}, profiles={"long": a_delay(40.0)})

    def decide(message):
        if calls := [one for one in message["events"] if one["type"] == "REQUESTED_CALL"]:
            assert len(calls) == 1
            return [("KILL_JOB", {"job_ids": ["w0!0", "w0!1"]})]
        started = [execute(one, {"w0!0": "0-1", "w0!1": "2"}[one]) for one in submitted(message)]
        return [*started, ("CALL_ME_LATER", {"timestamp": 30.0})] if started else []

    result, peer, _ = play(scenario, decide)

    killed = {"job_ids": ["w0!0", "w0!1"], "job_progress": {"w0!1": {"profile": "long", "progress": 0.75}}}
    assert [
        (10.0, "JOB_COMPLETED", "w0!0"),
        (30.0, "REQUESTED_CALL", {}),
        (30.0, "JOB_COMPLETED", "w0!1"),
        (30.0, "JOB_KILLED", killed),
        (30.0, "SIMULATION_ENDS", {}),
    ] == peer.log[3:]
    assert {"0": ("COMPLETED_SUCCESSFULLY", 0.0, 10.0), "1": ("COMPLETED_KILLED", 0.0, 30.0)} == states(
        result, scenario
    )


def test_a_mapping_may_put_several_pods_on_one_host(tmp_path):
    scenario = a_story(tmp_path, {"res": 3}, cpu=2)

    result, _, _ = play(
        scenario,
        lambda message: [execute(one, "1 3", mapping={"0": "1", "1": 0, "2": "1"}) for one in submitted(message)],
    )

    assert ["h4", "h2", "h4"] == [pod.node for pod in result.pods]


def test_energy_is_minus_one_because_it_is_not_simulated(tmp_path):
    scenario = a_story(tmp_path, {})

    def decide(message):
        jobs = submitted(message)
        return [("QUERY", {"requests": {"consumed_energy": {}}}), *(execute(one, "0") for one in jobs)] if jobs else []

    _, peer, _ = play(scenario, decide)

    assert (0.0, "ANSWER", {"consumed_energy": -1.0}) in peer.log


def test_metadata_is_a_column_of_the_table_of_jobs(tmp_path):
    scenario = a_story(tmp_path, {})

    def decide(message):
        said = [("SET_JOB_METADATA", {"job_id": "w0!0", "metadata": "first"})] if submitted(message) else []
        return [*said, *(execute(one, "0") for one in submitted(message))]

    _, _, decider = play(scenario, decide)

    assert {"w0!0": "first"} == decider.state.metadata


def test_a_run_without_jobs_begins_and_ends(tmp_path):
    more = "pods: [{name: other, image: app, scheduler: else, duration: 5s}]"
    scenario = a_story(tmp_path, {"subtime": 1}, more=more)

    result, peer, _ = play(scenario, LowestFirst(4))

    assert [(1.0, "JOB_SUBMITTED", "w0!0")] == peer.log[:1]
    assert "pending" == next(pod for pod in result.pods if pod.pod == "default/other").phase


def test_jobs_that_nothing_can_start_any_more_are_a_deadlock(tmp_path):
    scenario = a_story(tmp_path, {}, {"subtime": 3})

    result, peer, _ = play(scenario, never)

    assert (3.0, "SIMULATION_ENDS", {}) == peer.log[-1]
    expected = (
        "deadlock: 2 jobs will never run (w0!0, w0!1): nothing is left to happen, and the scheduler asked for no call"
    )
    assert expected == result.stopped


def test_a_run_that_its_scenario_ends_is_no_deadlock(tmp_path):
    scenario = a_story(tmp_path, {}, more="until: 7s")

    result, peer, _ = play(scenario, never)

    assert (7.0, "SIMULATION_ENDS", {}) == peer.log[-1]
    assert "" == result.stopped


def test_decisions_that_come_after_the_end_are_not_made(tmp_path):
    scenario = a_story(tmp_path, {}, more="until: 7s")

    def decide(message):
        ends = any(one["type"] == "SIMULATION_ENDS" for one in message["events"])
        return [execute("w0!0", "0")] if ends else []

    result, _, _ = play(scenario, decide)

    assert ("", "pending") == (result.stopped, result.pods[0].phase)


def test_a_job_whose_pod_the_scenario_removes_is_killed(tmp_path):
    more = "events: [{at: 4s, remove: w0-0-2}, {at: 4s, remove: w0-1}]"
    scenario = a_story(tmp_path, {"res": 2}, {}, more=more)

    def decide(message):
        if submitted(message):
            return [execute("w0!0", "0-1"), ("CALL_ME_LATER", {"timestamp": 6.0})]
        return [execute("w0!1", "2")] if any(one["type"] == "REQUESTED_CALL" for one in message["events"]) else []

    _, peer, _ = play(scenario, decide)

    ended = [
        (one["timestamp"], one["data"]["job_id"], one["data"]["job_state"])
        for message in peer.heard
        for one in message["events"]
        if one["type"] == "JOB_COMPLETED"
    ]
    # The pod that was left of the running job goes with it; the other job was gone before it was executed.
    assert [(4.0, "w0!0", "COMPLETED_FAILED"), (6.0, "w0!1", "COMPLETED_KILLED")] == ended
