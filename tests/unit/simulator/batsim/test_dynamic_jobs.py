"""Jobs that the decision process registers itself: profiles, images, acknowledgements, and the end of the simulation."""

import pytest

from lamina.simulator.batsim.batsim_settings import BatsimSettings
from lamina.simulator.run.batsim_files import JobNotes, jobs, jobs_csv
from tests.unit.simulator.batsim.harness import a_delay, a_story, execute, play, submitted

DYNAMIC = BatsimSettings(dynamic_jobs=True)
FINISHED = ("NOTIFY", {"type": "registration_finished"})


def profile(name, workload="dyn", **written):
    return ("REGISTER_PROFILE", {"workload_name": workload, "profile_name": name, "profile": written})


def register(job, **fields):
    return ("REGISTER_JOB", {"job_id": job, "job": {"id": job, "res": 1, "profile": "p", **fields}})


def notes_of(decider):
    return JobNotes(decider.state.dynamic.registered, decider.state.metadata)


def test_a_registered_job_runs_and_has_a_row(tmp_path):
    scenario = a_story(tmp_path, {})

    def decide(message):
        if submitted(message) == ["w0!0"]:
            new = [
                profile("p", type="delay", delay=7.0),
                register("dyn!a", res=2, walltime=9.0),
                execute("dyn!a", "2-3"),
            ]
            return [execute("w0!0", "0"), *new, FINISHED]
        return []

    result, peer, decider = play(scenario, decide, DYNAMIC)

    # Without acknowledgements, the decision process hears of its job when it ends.
    assert [(7.0, "JOB_COMPLETED", "dyn!a"), (10.0, "JOB_COMPLETED", "w0!0")] == peer.log[2:4]
    row = jobs_csv(result, scenario, notes_of(decider)).decode().splitlines()[2]
    assert "a,dyn,p,0.000000,2,9.000000,1,COMPLETED_SUCCESSFULLY,0.000000,7.000000,7.000000,0.000000,7.000000" in row


def test_acknowledged_jobs_are_submitted_like_others(tmp_path):
    scenario = a_story(tmp_path, {})

    def decide(message):
        if submitted(message) == ["w0!0"]:
            return [execute("w0!0", "0"), profile("p", type="delay", delay=2.0), register("dyn!a"), FINISHED]
        return [execute(one, "1") for one in submitted(message)]

    settings = BatsimSettings(dynamic_jobs=True, acknowledge=True, forward_profiles=True)
    _, peer, _ = play(scenario, decide, settings)

    (event,) = [one for one in peer.heard[2]["events"] if one["type"] == "JOB_SUBMITTED"]
    assert ("dyn!a", {"type": "delay", "delay": 2.0}) == (event["data"]["job_id"], event["data"]["profile"])
    assert 0.0 == event["data"]["job"]["subtime"]


def test_a_job_of_an_imported_profile_runs_its_image_and_requests_the_same(tmp_path):
    scenario = a_story(tmp_path, {}, profiles={"short": a_delay(10.0, cpu=0.25)})

    def decide(message):
        if submitted(message):
            return [execute("w0!0", "0"), register("w0!extra", profile="short"), execute("w0!extra", "1"), FINISHED]
        return []

    result, _, decider = play(scenario, decide, DYNAMIC)

    pods = decider.state.cluster.pods
    assert {("app",)} == {pod.pod.images for pod in pods.values()}
    assert {(("cpu", 250),)} == {pod.pod.requests for pod in pods.values()}
    assert ["finished", "finished"] == [pod.phase for pod in result.pods]


def test_without_the_end_of_registration_the_run_is_deadlocked(tmp_path):
    scenario = a_story(tmp_path, {})

    result, peer, _ = play(scenario, lambda message: [execute(one, "0") for one in submitted(message)], DYNAMIC)

    assert (
        "deadlock: jobs may still be registered, as the scheduler has not sent NOTIFY registration_finished"
        == result.stopped
    )
    assert (10.0, "SIMULATION_ENDS", {}) == peer.log[-1]


def test_registration_may_continue(tmp_path):
    scenario = a_story(tmp_path, {})

    def decide(message):
        if submitted(message):
            return [FINISHED, execute("w0!0", "0")]
        if any(one["type"] == "JOB_COMPLETED" and one["data"]["job_id"] == "w0!0" for one in message["events"]):
            more = [profile("p", type="delay", delay=1.0), register("dyn!b"), execute("dyn!b", "0")]
            return [("NOTIFY", {"type": "continue_registration"}), *more, FINISHED]
        return []

    result, _, decider = play(scenario, decide, DYNAMIC)

    assert "" == result.stopped
    assert [10.0, 11.0] == [one.ended for one in jobs(result, scenario, notes_of(decider))]


@pytest.mark.parametrize(
    ("events", "told"),
    [
        pytest.param(
            [register("dyn!a")],
            "job.profile: workload 'dyn' has no profile 'p'; send REGISTER_PROFILE before",
            id="no profile",
        ),
        pytest.param(
            [profile("short", workload="w0", type="delay", delay=1)],
            "workload 'w0' has a profile 'short' already",
            id="profile twice",
        ),
        pytest.param(
            [profile("p", type="smpi", trace="x")], "profile.type: 'smpi' is not simulated", id="profile type"
        ),
        pytest.param([profile("p", kind="delay")], "profile: Object missing required field `type`", id="no type"),
        pytest.param(
            [profile("p", type="delay", delay=1), register("a")],
            "job_id: 'a' names no workload; write WORKLOAD!JOB",
            id="no workload",
        ),
        pytest.param(
            [profile("p", type="delay", delay=1), register("w0!0", profile="short")],
            "job_id: there is a job 'w0!0' already",
            id="job twice",
        ),
        pytest.param(
            [profile("p", type="delay", delay=1), register("dyn!a", res=0)],
            "job: Expected `int` >= 1 - at `$.res`",
            id="no resources",
        ),
        pytest.param(
            [profile("p", type="delay", delay=1), register("dyn!a", res=200_000)],
            "job.res: 200000 resources are too many",
            id="too many",
        ),
        pytest.param(
            [profile("p", type="delay", delay=1), register("dyn!a", walltime=-3)],
            "job.walltime: -3 is no walltime",
            id="walltime",
        ),
        pytest.param(
            [profile("p", type="composed", seq=["p"]), register("dyn!a")],
            "job.profile: profile: profiles.p: the profiles contain each other: p → p",
            id="a profile in itself",
        ),
        pytest.param(
            [profile("p", type="parallel_homogeneous", cpu=1e9), register("dyn!a")],
            "job.profile: profile: profiles.p: counts in operations; say speed",
            id="operations without a speed",
        ),
        pytest.param(
            [FINISHED, profile("p", type="delay", delay=1)], "comes after registration_finished", id="after the end"
        ),
    ],
)
def test_what_cannot_be_registered(tmp_path, events, told):
    scenario = a_story(tmp_path, {})

    result, _, _ = play(scenario, lambda message: events if submitted(message) else [], DYNAMIC)

    assert result.stopped.startswith(f"reply 2 at 0 s: {told}".replace("→", " ")), result.stopped
