"""SWF logs of the Parallel Workloads Archive: what lines become, and what is left out or wrong."""

import gzip

import pytest

from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.run.batsim_files import jobs
from lamina.simulator.workloads import load_scenario
from lamina.simulator.workloads.imports.batsim_job import BatsimJob, job_of
from lamina.simulator.workloads.imports.import_schema import NodesEntry
from tests.unit.simulator.batsim.harness import LowestFirst, play
from tests.unit.simulator.workloads.imports.harness import around, bring, put, refused

HEADER = """\
; Version: 2.2
; Computer: Lichtenberg
;Installation: TU Musterstadt
; UnixStartTime: 749458803
; MaxProcs: 16
; Note: scheduled by hand: see the paper
;

"""


def a_line(
    number=1, submit=0, run=10, used=1, wanted=-1, walltime=-1, *, memory=-1, status=1, user=3, program=-1, before=-1
):
    fields = [
        number,
        submit,
        5,
        run,
        used,
        -1,
        -1,
        wanted,
        walltime,
        memory,
        status,
        user,
        1,
        program,
        2,
        -1,
        before,
        -1,
    ]
    return " ".join(map(str, fields))


def brought(folder, *lines, nodes=8, **entry):
    put(folder, "log.swf", HEADER + "\n".join(lines) + "\n")
    return bring(folder, swf="log.swf", nodes=nodes, **entry)


def wrong(folder, *lines, nodes=8, **entry):
    put(folder, "log.swf", HEADER + "\n".join(lines) + "\n")
    return refused(folder, swf="log.swf", nodes=nodes, **entry)


def test_a_job_becomes_a_pod_for_each_processor_that_it_wanted(tmp_path):
    found = brought(tmp_path, a_line(7, submit=30, run=120.5, used=2, wanted=3, walltime=600, program=4))

    assert ["swf-7-1", "swf-7-2", "swf-7-3"] == [one.pod.name for one in found.arrivals]
    first = found.arrivals[0]
    assert (30.0, PodLifecycle(seconds=120.5, deadline=600.0)) == (first.at, first.life)
    assert ((("cpu", 1000),), {"app": "executable-4"}) == (first.pod.requests, first.pod.labels)
    assert BatsimJob("swf", "7", "run120.5", 3, 600.0) == job_of(first.pod.annotations)


@pytest.mark.parametrize(
    ("line", "pods", "walltime", "application"),
    [
        pytest.param(a_line(used=4), 4, None, "user-3", id="processors used, the user's program"),
        pytest.param(a_line(used=4, wanted=0), 4, None, "user-3", id="0 wanted is unknown"),
        pytest.param(a_line(wanted=2, walltime=-1.0), 2, None, "user-3", id="a fraction as unknown"),
        pytest.param(a_line(walltime=60, user=-1), 1, 60.0, "job", id="no user"),
        pytest.param(a_line(walltime=0, program=0), 1, None, "executable-0", id="no time wanted"),
    ],
)
def test_what_is_unknown_is_taken_from_elsewhere_or_left_open(tmp_path, line, pods, walltime, application):
    found = brought(tmp_path, line).arrivals

    assert pods == len(found)
    assert (walltime, application) == (found[0].life.deadline, found[0].pod.labels["app"])


def test_memory_is_that_of_the_log_unless_the_entry_says_otherwise(tmp_path):
    line = a_line(memory=2048)

    assert (("cpu", 1000), ("memory", 2 * 1024**2)) == brought(tmp_path, line).arrivals[0].pod.requests
    assert (("cpu", 500), ("memory", 0)) == brought(tmp_path, line, cpu="500m", memory=0).arrivals[0].pod.requests


@pytest.mark.parametrize(
    ("status", "run", "failures"),
    [(1, 10, 0), (-1, 10, 0), (0, 10, -1), (5, 10, -1)],
    ids=["completed", "unknown", "failed", "cancelled while it ran"],
)
def test_jobs_that_failed_fail(tmp_path, status, run, failures):
    (arrival,) = brought(tmp_path, a_line(run=run, status=status)).arrivals

    assert failures == arrival.life.failures


def test_lines_that_are_no_jobs_are_left_out_and_counted(tmp_path):
    lines = [
        a_line(1),
        a_line(2, status=5, run=0),
        a_line(3, status=5, run=-1),
        a_line(4, run=-1),
        a_line(5, used=-1),
        a_line(6, before=1),
        a_line(6, status=2),
        a_line(6, status=3),
    ]

    found = brought(tmp_path, *lines)

    assert ["swf-1", "swf-6"] == [one.pod.name for one in found.arrivals]
    assert [
        "Computer Lichtenberg, Installation TU Musterstadt, MaxProcs 16",
        "2 lines left out: cancelled before they ran",
        "1 line left out: no run time",
        "1 line left out: no number of processors",
        "2 lines left out: parts of a job",
        "1 job waited for others in the log; here they come when they came there",
    ] == [note.partition(": ")[2] for note in found.notes]


def test_a_part_of_a_log_and_whole_nodes(tmp_path):
    lines = [a_line(1, submit=0, run=100), a_line(2, submit=50, run=10, wanted=6), a_line(3, submit=500)]

    found = brought(
        tmp_path, *lines, nodes=NodesEntry(count=2, cpu=4), start=40.0, until=400.0, whole_nodes=True, at=7.0
    )

    # The first job has run for 40 of its 100 seconds; six processors fill two nodes of four.
    assert [("swf-1", 7.0, 60.0), ("swf-2-1", 17.0, 10.0), ("swf-2-2", 17.0, 10.0)] == [
        (one.pod.name, one.at, one.life.seconds) for one in found.arrivals
    ]


def test_compressed_logs_and_comments_in_any_encoding_are_read(tmp_path):
    text = b"; Installation: B\xf6blingen\n" + a_line(1).encode() + b"\r\n; a comment in between\n"
    put(tmp_path, "log.swf.gz", gzip.compress(text))

    assert 1 == len(bring(tmp_path, swf="log.swf.gz", nodes=1).arrivals)


def test_without_nodes_the_header_says_how_many_to_write(tmp_path):
    (said,) = wrong(tmp_path, a_line(), nodes=None)

    assert "needs nodes to run on; say nodes: 16, as its header does" in said


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        pytest.param(["1 2 3"], "log.swf:9: has 3 of 18 fields: was the line cut short", id="too few fields"),
        pytest.param([a_line(run="soon")], "log.swf:9: run: 'soon' is not a number", id="no number"),
        pytest.param([a_line(run="nan")], "log.swf:9: run: 'nan' is not a number", id="not a number"),
        pytest.param(
            [a_line(submit=-1)], "log.swf:9: submit: is unknown, and every job needs one", id="no submit time"
        ),
        pytest.param([a_line(number=-1)], "log.swf:9: number: is unknown, and every job needs one", id="no job number"),
        pytest.param([a_line(run=1e12)], "log.swf:9: run: 1e+12 s are too long", id="too long"),
        pytest.param(
            [a_line(1), a_line(1)], "log.swf:10: number: there is a second job 1, the first is on line 9", id="twice"
        ),
        pytest.param(
            [a_line(wanted=9)],
            "log.swf:9: processors: the job needs 9 pods at once, and all nodes together have room for 8",
            id="larger than the machine",
        ),
        pytest.param([], "log.swf: has no job; a line has the fields number, submit", id="no jobs"),
    ],
)
def test_what_is_wrong_with_a_log_is_told_with_its_line(tmp_path, lines, told):
    assert wrong(tmp_path, *lines)[0].startswith(told), wrong(tmp_path, *lines)


def test_all_mistakes_are_told_together(tmp_path):
    assert 3 == len(wrong(tmp_path, "1", a_line(run="x"), a_line(3), a_line(3)))


def test_the_jobs_of_a_log_are_gangs_for_a_decision_process(tmp_path):
    put(tmp_path, "log.swf", a_line(1, run=10, wanted=2) + "\n" + a_line(2, submit=1, run=5, wanted=3) + "\n")
    (tmp_path / "scenario.yaml").write_text(
        "defaults: {startDelay: 0s}\nimages: {app: {base: 1MB}}\n"
        "nodes: [{name: h, count: 4, cpu: 1, memory: 4Gi, holds: [app]}]\nimports: [{swf: log.swf, image: app}]\n"
    )

    scenario = load_scenario(tmp_path / "scenario.yaml")
    result, peer, _ = play(scenario, LowestFirst(4))

    assert [("1", 0.0, 10.0), ("2", 10.0, 15.0)] == [
        (one.job.job, one.started, one.ended) for one in jobs(result, scenario)
    ]
    assert {"swf": {"run10": {"type": "delay", "delay": 10.0}, "run5": {"type": "delay", "delay": 5.0}}} == (
        peer.heard[0]["events"][0]["data"]["profiles"]
    )


def test_an_image_is_chosen_for_each_executable(tmp_path):
    lines = [a_line(number, program=number % 2) for number in range(1, 6)]

    found = bring(tmp_path, around(), swf=put(tmp_path, "log.swf", "\n".join(lines)).name, nodes=8)

    assert 2 == len({one.pod.images for one in found.arrivals})
