"""Results in Batsim's words: the columns, what each of them means, and a workload that goes in and comes out again."""

import csv
import io

import pytest

from lamina.model.errors import Mistake
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.run import SimulationResult, simulate
from lamina.simulator.run.batsim_files import JobNotes, jobs_csv, machine_states_csv, schedule_csv
from lamina.simulator.run.result import NodeOutcome, PodOutcome
from lamina.simulator.workloads import PodArrival, Scenario
from lamina.simulator.workloads.imports import ImportContext, ImportEntry, read
from lamina.simulator.workloads.imports.batsim_job import BatsimJob
from lamina.testing import a_pod, an_image

HEADER = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
    "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,"
    "consumed_energy,metadata"
)
SCHEDULE = (
    "batsim_version,consumed_joules,makespan,max_slowdown,max_turnaround_time,max_waiting_time,mean_slowdown,"
    "mean_turnaround_time,mean_waiting_time,nb_computing_machines,nb_grouped_switches,nb_jobs,nb_jobs_finished,"
    "nb_jobs_killed,nb_jobs_success,nb_machine_switches,scheduling_time,simulation_time,success_rate,time_computing,"
    "time_idle,time_sleeping,time_switching_off,time_switching_on,time_unavailable"
)


FINISHED = (
    "a,story,,10.000000,1,-1.000000,1,COMPLETED_SUCCESSFULLY,20.000000,40.000000,60.000000,10.000000,50.000000,"
    "1.250000,0,-1,"
)


def a_result(*pods: PodOutcome, nodes: int = 4) -> SimulationResult:
    found = [NodeOutcome(node=f"n{number}", bytes_pulled=0, pulls=0, bytes_held=0, pods=0) for number in range(nodes)]
    return SimulationResult(
        scenario="story",
        profile="p",
        seed=0,
        seconds=100.0,
        peak_load=None,
        imbalance=None,
        pods=pods,
        nodes=tuple(found),
    )


def an_outcome(name: str = "a", **more) -> PodOutcome:
    """A pod that came at 10, was bound at 15, ran from 20 to 60 and finished well."""
    usual = {"phase": "finished", "node": "n0", "arrived": 10.0, "bound": 15.0, "started": 20.0, "ended": 60.0}
    return PodOutcome(pod=f"default/{name}", **{**usual, **more})


def a_scenario(*names: str, **annotations: dict[str, str]) -> Scenario:
    return Scenario(
        name="story", arrivals=tuple(PodArrival(0.0, a_pod(one, annotations=annotations[one])) for one in names)
    )


def rows(table: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.decode())))


def test_a_pod_is_a_job_of_its_own():
    assert [
        HEADER,
        FINISHED,
    ] == jobs_csv(a_result(an_outcome())).decode().splitlines()


def test_the_pods_of_a_batsim_job_are_one_row():
    job = BatsimJob("w0", "7", "long", 3, 99.0).written()
    pods = [an_outcome("a"), an_outcome("b", node="n1", started=25.0, ended=70.0), an_outcome("c", node="n3")]

    (row,) = rows(jobs_csv(a_result(*pods), a_scenario("a", "b", "c", a=job, b=job, c=job)))

    # It began when its last pod did, at 25, and ended with its last, at 70: 45 of 60 seconds.
    assert ["7", "w0", "long", "3", "99.000000"] == [
        row[name] for name in ("job_id", "workload_name", "profile", "requested_number_of_resources", "requested_time")
    ]
    assert ["25.000000", "45.000000", "70.000000", "15.000000", "60.000000", "1.333333", "0-1 3"] == [
        row[name]
        for name in (
            *("starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time", "stretch"),
            "allocated_resources",
        )
    ]


@pytest.mark.parametrize(
    ("outcome", "state", "success"),
    [
        pytest.param({}, "COMPLETED_SUCCESSFULLY", "1", id="finished"),
        pytest.param({"phase": "failed"}, "COMPLETED_FAILED", "0", id="failed"),
        pytest.param(
            {"phase": "failed", "reason": "DeadlineExceeded"}, "COMPLETED_WALLTIME_REACHED", "0", id="its time was up"
        ),
        pytest.param({"phase": "removed"}, "COMPLETED_KILLED", "0", id="removed while it ran"),
        pytest.param(
            {"phase": "removed", "bound": None, "started": None, "node": ""}, "REJECTED", "0", id="removed early"
        ),
        pytest.param({"phase": "rejected", "started": None}, "REJECTED", "0", id="rejected by its node"),
        pytest.param({"phase": "running", "ended": None}, "RUNNING", "0", id="still running"),
        pytest.param({"phase": "pending", "started": None, "ended": None}, "SUBMITTED", "0", id="still waiting"),
    ],
)
def test_how_a_job_ended(outcome, state, success):
    (row,) = rows(jobs_csv(a_result(an_outcome(**outcome))))

    assert (state, success) == (row["final_state"], row["success"])


def test_what_has_not_happened_is_left_empty():
    pending = an_outcome(phase="pending", node="", started=None, ended=None)

    (row,) = rows(jobs_csv(a_result(pending)))

    assert [""] * 7 == [
        row[name]
        for name in (
            *("starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time", "stretch"),
            "allocated_resources",
        )
    ]


def test_the_schedule_has_all_keys_in_alphabetical_order():
    header = schedule_csv(a_result(an_outcome())).decode().splitlines()[0]

    assert (SCHEDULE, sorted(SCHEDULE.split(","))) == (header, header.split(","))


def test_the_figures_of_a_schedule():
    late = an_outcome("b", phase="failed", reason="DeadlineExceeded", started=30.0, ended=40.0)
    waiting = an_outcome("c", phase="pending", started=None, ended=None, node="")

    (row,) = rows(schedule_csv(a_result(an_outcome(), late, waiting, nodes=2), scheduling_seconds=1.5))

    expected = {
        "consumed_joules": "-1",
        "makespan": "60.000000",
        "max_slowdown": "3.000000",  # 30 seconds for 10 seconds of work
        "mean_slowdown": "2.125000",  # of 1.25 and 3
        "max_turnaround_time": "50.000000",
        "mean_turnaround_time": "40.000000",
        "max_waiting_time": "20.000000",
        "mean_waiting_time": "15.000000",
        "nb_computing_machines": "2",
        "nb_jobs": "3",
        "nb_jobs_finished": "2",
        "nb_jobs_killed": "1",
        "nb_jobs_success": "1",
        "success_rate": "0.333333",
        "scheduling_time": "1.500000",
        "time_computing": "50.000000",
        "time_idle": "70.000000",  # 2 machines for 60 seconds, less 50
    }
    assert expected == {name: row[name] for name in expected}


def test_a_run_without_pods_has_a_header_and_a_schedule_of_zeros():
    assert f"{HEADER}\n" == jobs_csv(a_result()).decode()
    assert "0.000000" == rows(schedule_csv(a_result()))[0]["mean_slowdown"]


STATES = ("time", "nb_sleeping", "nb_switching_on", "nb_switching_off", "nb_idle", "nb_computing")


def test_machine_states_have_batsims_columns_and_a_row_for_every_change():
    """Two pods share n0 from 20 on, so it computes until the longer one ends."""
    pods = [
        an_outcome("a"),
        an_outcome("b", started=30.0, ended=70.0),
        an_outcome("c", node="n1", started=20.0, ended=30.0),
        an_outcome("d", node="n2", started=70.0, ended=None, phase="running"),
        an_outcome("e", started=None, ended=None, phase="pending", node=""),
    ]

    table = rows(machine_states_csv(a_result(*pods)))

    assert STATES == tuple(table[0])
    assert [(0.0, 4, 0), (20.0, 2, 2), (30.0, 3, 1)] == [
        (float(row["time"]), int(row["nb_idle"]), int(row["nb_computing"])) for row in table
    ]
    assert {4} == {sum(int(row[state]) for state in STATES[1:]) for row in table}


def test_a_decision_process_adds_metadata_and_jobs():
    job = BatsimJob("dyn", "new", "p", 1)
    notes = JobNotes({"default/b": job}, {"dyn!new": "resubmitted"})

    (_, second) = rows(jobs_csv(a_result(an_outcome("a"), an_outcome("b")), None, notes))

    assert ("new", "dyn", "p", "resubmitted") == tuple(
        second[name] for name in ("job_id", "workload_name", "profile", "metadata")
    )


def test_a_job_that_was_killed_while_it_pulled_is_no_rejected_one():
    outcomes = [
        an_outcome("a", phase="removed", started=None),
        an_outcome("b", phase="removed", started=None, bound=None),
    ]

    assert ["COMPLETED_KILLED", "REJECTED"] == [row["final_state"] for row in rows(jobs_csv(a_result(*outcomes)))]


@pytest.mark.parametrize("job", ['a,"b', "a\nb", "a b", "ü"])
def test_names_survive_the_table(job):
    written = BatsimJob("w 0", job, "p,q", 1).written()

    (row,) = rows(jobs_csv(a_result(an_outcome()), a_scenario("a", a=written)))

    assert (job, "w 0", "p,q") == (row["job_id"], row["workload_name"], row["profile"])


class Said:
    def mistake(self, message: str, *steps: str | int) -> Mistake:
        return Mistake("scenario.yaml", message)


def test_a_workload_goes_in_and_its_jobs_come_out(tmp_path):
    (tmp_path / "w.json").write_text(
        """{"nb_res": 2, "jobs": [
        {"id": "first", "subtime": 0, "res": 2, "profile": "ten", "walltime": 100},
        {"id": "next", "subtime": 1, "res": 1, "profile": "ten"},
        {"id": "bad", "subtime": 60, "res": 1, "profile": "broken"},
        {"id": "slow", "subtime": 90, "res": 1, "profile": "ten", "walltime": 5}],
        "profiles": {"ten": {"type": "delay", "delay": 10}, "broken": {"type": "delay", "delay": 3, "ret": 1}}}"""
    )
    image = an_image("web:1", {"base": 1})
    imported = read(ImportEntry(batsim="w.json", nodes=2), tmp_path, ImportContext(entry=Said(), images=(image,)))
    scenario = Scenario(name="s", images=(image,), nodes=imported.nodes, arrivals=imported.arrivals)

    result = simulate(scenario, named("lamina-balanced", registry()), seed=1)
    table = jobs_csv(result, scenario)

    assert [
        ("first", "2", "100.000000", "COMPLETED_SUCCESSFULLY", "0-1"),
        ("next", "1", "-1.000000", "COMPLETED_SUCCESSFULLY", "0"),
        ("bad", "1", "-1.000000", "COMPLETED_FAILED", "0"),
        ("slow", "1", "5.000000", "COMPLETED_WALLTIME_REACHED", "0"),
    ] == [
        (
            row["job_id"],
            row["requested_number_of_resources"],
            row["requested_time"],
            row["final_state"],
            row["allocated_resources"].replace("1", "0") if row["job_id"] != "first" else row["allocated_resources"],
        )
        for row in rows(table)
    ]
    assert table == jobs_csv(simulate(scenario, named("lamina-balanced", registry()), seed=1), scenario)
    (figures,) = rows(schedule_csv(result, scenario))
    assert ("4", "4", "1", "2") == tuple(
        figures[name] for name in ("nb_jobs", "nb_jobs_finished", "nb_jobs_killed", "nb_jobs_success")
    )
