"""Batsim's workloads: what jobs become, and what is wrong with those that cannot."""

import gzip
import json
import os
from pathlib import Path

import pytest
import zstandard

from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads.imports.batsim_job import BatsimJob, job_of
from lamina.simulator.workloads.imports.import_schema import NodesEntry
from tests.unit.simulator.workloads.imports.harness import SHORT, a_job, a_workload, around, bring, put, refused

BESIDE = Path(__file__).resolve().parents[6] / "shared" / "data"
DATA = Path(os.environ.get("LAMINA_DATA", BESIDE)) / "batkube"


def brought(folder, text, **entry):
    put(folder, "w.json", text)
    return bring(folder, batsim="w.json", **entry)


def wrong(folder, text, **entry):
    put(folder, "w.json", text)
    return refused(folder, batsim="w.json", **entry)


def test_a_job_becomes_a_pod_with_its_times(tmp_path):
    job = a_job(7, subtime=2.5, walltime=60)

    (arrival,) = brought(tmp_path, a_workload(job, short=SHORT)).arrivals

    assert (2.5, "w0-7", PodLifecycle(seconds=10.0, deadline=60.0)) == (arrival.at, arrival.pod.name, arrival.life)
    assert (("cpu", 1000),) == arrival.pod.requests
    assert BatsimJob("w0", "7", "short", 1, 60.0) == job_of(arrival.pod.annotations)


def test_a_job_of_n_resources_becomes_n_pods_of_one_owner(tmp_path):
    arrivals = brought(tmp_path, a_workload(a_job(res=3), short=SHORT)).arrivals

    assert ["w0-1-1", "w0-1-2", "w0-1-3"] == [one.pod.name for one in arrivals]
    assert {"w0-1"} == {one.pod.owner.name for one in arrivals if one.pod.owner}


def test_pods_come_in_the_order_of_their_times_and_jobs_of_one_time_in_that_of_the_file(tmp_path):
    jobs = [a_job(1, subtime=5), a_job(2), a_job(3, subtime=5), a_job(4)]

    arrivals = brought(tmp_path, a_workload(*jobs, short=SHORT)).arrivals

    assert ["w0-2", "w0-4", "w0-1", "w0-3"] == [one.pod.name for one in arrivals]


def test_whole_nodes_take_as_few_pods_as_fill_them(tmp_path):
    text = a_workload(a_job(res=10), nb_res=12, short=SHORT)

    arrivals = brought(tmp_path, text, whole_nodes=True, nodes=NodesEntry(count=3, cpu=4)).arrivals

    # 10 resources of 1 cpu on nodes of 4: three nodes.
    assert [(("cpu", 4000),)] * 3 == [one.pod.requests for one in arrivals]


@pytest.mark.parametrize(
    ("entry", "profile", "asked"),
    [
        pytest.param({}, SHORT, (("cpu", 1000),), id="one core by default"),
        pytest.param({}, {**SHORT, "cpu": "250m"}, (("cpu", 250),), id="as batkube writes it"),
        pytest.param({}, {**SHORT, "cpu": 0.5, "memory": "1Ki"}, (("cpu", 500), ("memory", 1024)), id="and memory"),
        pytest.param({"cpu": 2}, {**SHORT, "cpu": "250m"}, (("cpu", 2000),), id="the entry wins"),
        pytest.param({"memory": "1Ki"}, SHORT, (("cpu", 1000), ("memory", 1024)), id="memory of the entry"),
    ],
)
def test_what_a_resource_asks_for(tmp_path, entry, profile, asked):
    (arrival,) = brought(tmp_path, a_workload(a_job(), short=profile), **entry).arrivals

    assert asked == arrival.pod.requests


@pytest.mark.parametrize(
    ("profile", "seconds", "failures"),
    [
        pytest.param({"type": "delay", "delay": 20.2}, 20.2, 0, id="delay"),
        pytest.param({"type": "DelayProfile", "delay": 3}, 3.0, 0, id="delay of version 5"),
        pytest.param({"type": "delay", "delay": 3, "ret": 1}, 3.0, -1, id="an exit code other than 0 fails"),
        pytest.param(
            {"type": "parallel", "cpu": [5e6, 2e6], "com": [0, 0, 0, 0]}, 5.0, 0, id="the busiest host counts"
        ),
        pytest.param({"type": "parallel_homogeneous", "cpu": 10e6, "com": 0}, 10.0, 0, id="homogeneous: each host"),
        pytest.param({"type": "parallel_homogeneous_total", "cpu": 10e6, "com": 0}, 5.0, 0, id="total: shared by 2"),
        pytest.param({"type": "ParallelTaskHomogeneousProfile", "cpu": 4e6}, 4.0, 0, id="homogeneous of version 5"),
        pytest.param(
            {
                "type": "ParallelTaskHomogeneousProfile",
                "cpu": 4e6,
                "generation_strategy": "DefinedAmountsSpreadUniformly",
            },
            2.0,
            0,
            id="total of version 5",
        ),
        pytest.param({"type": "composed", "seq": ["two", "three"], "repeat": 4}, 20.0, 0, id="composed: 4 times 2 + 3"),
        pytest.param({"type": "composed", "seq": ["nested", "two"]}, 8.0, 0, id="composed inside: 2 times 3, and 2"),
        pytest.param(
            {"type": "composed", "seq": ["two", "broken", "two"], "repeat": 9}, 3.0, -1, id="ends at a failure"
        ),
        pytest.param({"type": "SequentialCompositionProfile", "seq": ["two"]}, 2.0, 0, id="composed of version 5"),
    ],
)
def test_how_long_a_profile_runs(tmp_path, profile, seconds, failures):
    others = {
        "two": {"type": "delay", "delay": 2},
        "three": {"type": "delay", "delay": 3},
        "broken": {"type": "delay", "delay": 1, "ret": 3},
        "nested": {"type": "composed", "seq": ["three"], "repeat": 2},
    }
    text = a_workload(a_job(res=2), short=profile, **others)

    arrivals = brought(tmp_path, text, speed=1e6).arrivals

    assert [PodLifecycle(seconds=seconds, failures=failures)] * 2 == [one.life for one in arrivals]


def test_communication_takes_no_time_and_that_is_noted(tmp_path):
    profile = {"type": "parallel_homogeneous", "cpu": 1e6, "com": 1e9}

    imported = brought(tmp_path, a_workload(a_job(), short=profile), speed=1e6)

    assert 1.0 == imported.arrivals[0].life.seconds
    assert [f"{tmp_path}/w.json: communication takes no time here (profiles short)"] == list(imported.notes)


@pytest.mark.parametrize(
    ("jobs", "profiles", "told"),
    [
        pytest.param([a_job(subtime=-1)], {}, "w.json:3: jobs[0].subtime: Expected `float` >= 0.0", id="negative time"),
        pytest.param([a_job(), a_job(2, res=0)], {}, "w.json:4: jobs[1].res: Expected `int` >= 1", id="no resource"),
        pytest.param([a_job(res="2")], {}, "w.json:3: jobs[0].res: Expected `int`, got `str`", id="text for a number"),
        pytest.param(
            [{"id": "1"}], {}, "w.json:3: jobs[0]: Object missing required field `subtime`", id="a field is missing"
        ),
        pytest.param(
            [a_job(walltime=0)],
            {},
            "w.json:3: jobs[0].walltime: 0 is no walltime; write seconds above 0, or -1 for none",
            id="no walltime",
        ),
        pytest.param(
            [a_job(), a_job()],
            {},
            "w.json:4: jobs[1].id: there is a second job '1', the first is on line 3",
            id="twice",
        ),
        pytest.param(
            [a_job(profile="shrot")],
            {},
            "w.json:3: jobs[0].profile: there is no profile 'shrot'; did you mean 'short'?",
            id="unknown profile",
        ),
        pytest.param(
            [a_job(res=5)],
            {},
            "w.json:3: jobs[0].res: the job needs 5 resources, and nb_res says there are 4",
            id="larger than the cluster",
        ),
        pytest.param(
            [a_job(profile="p")],
            {"p": {"type": "smpi", "trace": "x"}},
            "w.json:6: profiles.p: profile type 'smpi' is not simulated; write a delay with the seconds it took",
            id="a kind that is not simulated",
        ),
        pytest.param(
            [a_job(profile="p")],
            {"p": {"type": "dealy", "delay": 1}},
            "w.json:6: profiles.p: profile type 'dealy' is not simulated; did you mean 'delay'?",
            id="a misspelled kind",
        ),
        pytest.param(
            [a_job(profile="p")],
            {"p": {"type": "parallel_homogeneous", "cpu": 1e6}},
            "w.json:6: profiles.p: counts in operations; say speed, or name a platform, whose hosts have one",
            id="no speed",
        ),
        pytest.param(
            [a_job(profile="p")],
            {"p": {"type": "composed", "seq": ["q"]}, "q": {"type": "composed", "seq": ["p"]}},
            "w.json:7: profiles.q: the profiles contain each other: p → q → p",
            id="profiles in a circle",
        ),
        pytest.param(
            [a_job(profile="p")],
            {"p": {"type": "composed", "seq": ["short"], "repeat": 1_000_000_000}},
            "w.json:6: profiles.p: 1e+10 seconds are too long; at most ten years are simulated",
            id="too long",
        ),
        pytest.param(
            [a_job(profile="p")],
            {"p": {"type": "delay", "delay": -3}},
            "w.json:6: profiles.p.delay: Expected `float` >= 0.0",
            id="negative delay",
        ),
        pytest.param(
            [a_job(profile="p")],
            {"p": {"type": "delay", "delay": 3, "cpu": "-1"}},
            "w.json:3: jobs[0].profile: its profile asks for less than nothing; write cpu and memory of 0 or more",
            id="negative cpu",
        ),
    ],
)
def test_what_is_wrong_with_a_workload(tmp_path, jobs, profiles, told):
    assert [told] == wrong(tmp_path, a_workload(*jobs, short=SHORT, **profiles))


def test_all_mistakes_are_told_together_and_those_of_a_shared_profile_once(tmp_path):
    profiles = {"short": SHORT, "bad": {"type": "smpi"}}
    jobs = [a_job(1, profile="bad"), a_job(2, profile="bad"), a_job(3, subtime=-1)]

    told = wrong(tmp_path, a_workload(*jobs, **profiles))

    # The profile stands on line 8, the third job on line 5.
    assert ["w.json:8", "w.json:5"] == [line.partition(": ")[0] for line in told]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            '{"nb_res": 1, "jobs": [', "w.json:1: cannot be read as JSON: it ends in the middle", id="cut short"
        ),
        pytest.param('{"nb_res": 1,\n"jobs": [NaN]}', "w.json:2: cannot be read as JSON", id="NaN"),
        pytest.param(
            a_workload(a_job(), short=SHORT).replace('"subtime": 0', '"subtime": 1e999'), "w.json", id="infinity"
        ),
        pytest.param('{"jobs": [], "profiles": {}}', "w.json: Object missing required field `nb_res`", id="no nb_res"),
        pytest.param(b"\xff\xfe{\x00", "w.json:1: is not text in UTF-8", id="another encoding"),
        pytest.param("", "w.json", id="empty"),
        pytest.param("[" * 100_000, "w.json", id="deep"),
    ],
)
def test_what_is_no_workload_at_all(tmp_path, text, told):
    (mistake,) = wrong(tmp_path, text)

    assert mistake.startswith(told), mistake


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_compressed_workload_is_read_and_one_that_was_cut_short_is_not(tmp_path, compress):
    text = a_workload(*(a_job(number) for number in range(50)), short=SHORT)
    data = compress(text.encode())
    put(tmp_path, "w.json", data)
    put(tmp_path, "short.json", data[:-5])

    assert 50 == len(bring(tmp_path, batsim="w.json").arrivals)
    assert ["short.json: is truncated in its compressed data; write it or copy it again"] == refused(
        tmp_path, batsim="short.json"
    )


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_file_that_grows_too_much_is_refused_before_it_has_grown(tmp_path, compress):
    put(tmp_path, "bomb.json", compress(b" " * 64 * 1024**2))

    (told,) = refused(tmp_path, batsim="bomb.json")

    assert told.startswith("bomb.json: is larger than 33554432 bytes when decompressed")


def test_a_job_that_all_nodes_together_cannot_hold_is_refused(tmp_path):
    told = wrong(tmp_path, a_workload(a_job(res=5), nb_res=9, short=SHORT), nodes=NodesEntry(count=2, cpu=2))

    assert ["w.json:3: jobs[0].res: the job needs 5 pods at once, and all nodes together have room for 4"] == told


def test_a_pod_that_fits_on_no_node_is_refused_with_what_is_lacking(tmp_path):
    told = wrong(tmp_path, a_workload(a_job(), short={**SHORT, "cpu": 8}), nodes=NodesEntry(count=2, cpu=2))

    message = "the pod asks for 8 cpu, but the largest node, node1, has 2; take larger nodes, or leave this job out"
    assert [f"w.json:3: {message}"] == told


def test_only_a_part_of_a_workload_can_be_taken(tmp_path):
    jobs = [a_job(number, subtime=number * 10, profile="long") for number in range(6)]
    text = a_workload(*jobs, long={"type": "delay", "delay": 15})

    arrivals = brought(tmp_path, text, start=20, until=50, at=3600.0, limit=3).arrivals

    # At 20 s job 1, which came at 10 and runs to 25, has 5 s left; job 0 is over; jobs 2 and 3 follow, 4 is over the limit.
    assert [(3600.0, "w0-1", 5.0), (3600.0, "w0-2", 15.0), (3610.0, "w0-3", 15.0)] == [
        (one.at, one.pod.name, one.life.seconds) for one in arrivals
    ]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        pytest.param({"functions": 3}, "functions: means nothing here", id="an option of another kind"),
        pytest.param({"manifests": "x"}, "say exactly one of batsim, swf, alibabaDlrm", id="two kinds"),
        pytest.param({"image": "wbe:1"}, "image: there is no image 'wbe:1'; did you mean 'web:1'?", id="image"),
        pytest.param({"whole_nodes": True}, "wholeNodes: needs nodes to fill", id="whole nodes of nothing"),
        pytest.param({"platform": "p.xml"}, "platform: there is no such file; choose from w.json", id="platform"),
    ],
)
def test_what_is_wrong_with_an_entry_is_told_at_the_entry(tmp_path, entry, told):
    (mistake,) = wrong(tmp_path, a_workload(a_job(), short=SHORT), **entry)

    assert mistake.startswith(f"scenario.yaml:7: {told}"), mistake


@pytest.mark.parametrize(
    ("name", "told"),
    [
        pytest.param("nowhere.json", "there is no such file", id="missing"),
        pytest.param("/etc/passwd", "must be relative to this file", id="absolute"),
        pytest.param("a\0b", "there is no such file", id="no name at all"),
    ],
)
def test_a_file_that_cannot_be_found_is_told_at_the_entry(tmp_path, name, told):
    assert [f"scenario.yaml:7: batsim: {told}"] == refused(tmp_path, batsim=name)


def test_a_folder_is_no_workload(tmp_path):
    (tmp_path / "w.json").mkdir()

    assert ["w.json: is not a file; name one"] == refused(tmp_path, batsim="w.json")


def test_without_images_there_is_nothing_to_run(tmp_path):
    put(tmp_path, "w.json", a_workload(a_job(), short=SHORT))

    assert ["scenario.yaml:7: there is no image to run; name a catalog, list images, or say image"] == refused(
        tmp_path, around(images=()), batsim="w.json"
    )


@pytest.mark.skipif(
    not DATA.is_dir(),
    reason="the data folder lacks batkube/; set LAMINA_DATA to a folder that has it, see docs/data-folder.md",
)
@pytest.mark.parametrize(
    ("name", "pods", "last", "longest"),
    [
        ("200_delay170", 200, 0.0, 170.0),
        ("spaced_200_delay170", 200, 1990.0, 170.0),
        ("KIT_10h_80", 39, 28954.0, 3600.0),
    ],
)
def test_the_workloads_of_batkube_are_read(name, pods, last, longest):
    arrivals = bring(DATA, batsim=f"{name}.json", nodes=NodesEntry(count=16, cpu=6)).arrivals

    assert pods == len(json.loads((DATA / f"{name}.json").read_text())["jobs"]) == len(arrivals)
    assert (last, longest) == (arrivals[-1].at, max(one.life.seconds or 0.0 for one in arrivals))
