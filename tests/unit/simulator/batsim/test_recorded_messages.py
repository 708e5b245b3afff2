"""Golden logs: runs that real schedulers of PyBatsim decided, and one story that was written from the protocol's page."""

import io
import json
from pathlib import Path

import msgspec
import pytest

from lamina.apiserver.batsim.batsim_run import RepeatedBatsimRun
from lamina.model.errors import InputError
from lamina.simulator.batsim.batsim_settings import BatsimSettings
from lamina.simulator.batsim.message_log import MessageLogHeader, MessageLogWriter, read_message_log
from lamina.simulator.decider import RunStoppedError
from lamina.simulator.run import simulate
from lamina.simulator.run.batsim_files import jobs, jobs_csv
from lamina.simulator.workloads import load_scenario
from tests.contiguous_schedules import ContiguousEasy, FirstFit, Job, schedule

DATA = Path(__file__).resolve().parents[3] / "data" / "batsim"
HOSTS = 8
SECONDS = {"p8": 8, "p10": 10, "p20": 20, "p30": 30, "p45": 45.5, "fails": 6, "v5": 11, "twice": 20}
CONTIGUOUS = {
    "schedFcfs": lambda: FirstFit(HOSTS, filling=False),
    "schedFiller": lambda: FirstFit(HOSTS, filling=True),
    "easyBackfill": lambda: ContiguousEasy(HOSTS),
}


@pytest.fixture(autouse=True)
def beside_the_data(monkeypatch):
    """Messages name the workload's file as the scenario was named."""
    monkeypatch.chdir(DATA)


def repeated(log, scenario="scenario.yaml"):
    found = load_scenario(scenario)
    run = RepeatedBatsimRun((DATA / log).read_bytes(), log)
    run.scenario = found
    result = simulate(found, decider=run.make_decider, latency=run.latency)
    run.figures()
    return result, found, run


@pytest.mark.parametrize("scheduler", [*CONTIGUOUS, "fillerSched"])
def test_a_recorded_run_of_pybatsim_is_repeated_message_for_message(scheduler):
    result, scenario, run = repeated(f"pybatsim-{scheduler}.messages")

    assert "" == result.stopped
    assert f"pybatsim {scheduler}" == run.name
    assert 14 == sum(one.is_over for one in jobs(result, scenario))


@pytest.mark.parametrize("scheduler", CONTIGUOUS)
def test_contiguous_schedulers_start_every_job_when_and_where_the_reference_does(scheduler):
    wanted = json.loads((DATA / "workload.json").read_text())["jobs"]
    listed = [
        Job(str(one["id"]), one["subtime"], one["res"], SECONDS[one["profile"]], one["walltime"]) for one in wanted
    ]

    result, scenario, _ = repeated(f"pybatsim-{scheduler}.messages")

    expected = schedule(CONTIGUOUS[scheduler](), listed)
    assert {name: (one.at, tuple(range(one.first, one.last + 1))) for name, one in expected.items()} == {
        one.job.job: (one.started, one.nodes) for one in jobs(result, scenario)
    }


def test_the_messages_that_were_written_by_hand_are_sent_byte_for_byte():
    result, scenario, run = repeated("by-hand.messages", "by-hand.yaml")

    assert "" == result.stopped
    assert {
        "long": ("COMPLETED_KILLED", 2.0, 25.5),
        "late": ("COMPLETED_WALLTIME_REACHED", 10.0, 22.0),
        "big": ("REJECTED", None, 10.0),
        "my_new_job": ("COMPLETED_SUCCESSFULLY", 22.0, 32.0),
    } == {one.job.job: (one.state, one.started, one.ended) for one in jobs(result, scenario, run.notes)}
    assert jobs_csv(result, scenario, run.notes).decode().splitlines()[1].endswith(",scheduler-defined string")


def test_a_run_that_differs_from_its_log_is_reported_with_the_line():
    scenario = load_scenario("scenario.yaml")
    run = RepeatedBatsimRun((DATA / "pybatsim-schedFcfs.messages").read_bytes(), "x.messages")
    run.scenario = msgspec.structs.replace(scenario, nodes=scenario.nodes[:7])

    with pytest.raises(InputError, match=r"x.messages:2: the run differs: it sends ….*nb_resources.:7"):
        simulate(run.scenario, decider=run.make_decider)


def test_a_run_that_ends_before_its_log_is_reported():
    run = RepeatedBatsimRun((DATA / "pybatsim-schedFcfs.messages").read_bytes(), "x.messages")
    run.scenario = msgspec.structs.replace(load_scenario("scenario.yaml"), until=5.0)

    # The last message of the shorter run is another one.
    with pytest.raises(InputError, match="the run differs"):
        simulate(run.scenario, decider=run.make_decider)


def log_of(*exchanges):
    """A log of exchanges, each a function of a request."""
    sink = io.BytesIO()
    writer = MessageLogWriter(sink, MessageLogHeader(scenario="s", scheduler="x", settings=BatsimSettings()))
    for request, answer in exchanges:
        try:
            writer.logged(answer)(request)
        except RunStoppedError:
            break
    return sink.getvalue()


def test_a_log_keeps_replies_of_any_bytes_and_why_a_run_ended():
    def lost(_):
        raise RunStoppedError("message 2: gone")

    data = log_of((b'{"now": 0,\n "events": []}', lambda _: b"\xff no JSON"), (b"{}", lost))

    _, (first, last) = read_message_log(data, "x")
    assert (b'{"now":0,"events":[]}', b"\xff no JSON") == (bytes(first.request), first.text.encode("latin-1"))
    assert "message 2: gone" == last.stopped


@pytest.mark.parametrize(
    ("data", "told"),
    [
        pytest.param(b"", "x:1: is no log of messages", id="empty"),
        pytest.param(b'{"format":"other","version":1}\n', "x:1: has the format other 1", id="another format"),
        pytest.param(b'{"format":"lamina-batsim-messages","version":9}\n', "this version reads", id="a later version"),
        pytest.param(
            b'{"format":"lamina-batsim-messages"}\n{"request"', "x:2: cannot be read: Input data was", id="cut short"
        ),
    ],
)
def test_what_is_no_log_is_reported(data, told):
    with pytest.raises(InputError, match=told):
        read_message_log(data, "x")
