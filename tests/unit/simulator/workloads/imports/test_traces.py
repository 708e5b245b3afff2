"""Alibaba's and Azure's traces: what rows become, and what is wrong with those that cannot."""

import gzip

import pytest

from lamina.model.resources import amounts
from lamina.simulator.workloads.imports.azure_functions import quantile
from lamina.simulator.workloads.imports.import_schema import FunctionFiles, GpuFiles, NodesEntry
from tests.unit.simulator.workloads.imports.harness import bring, put, refused

GIB = 1024**3

# ------------------------------------------------------------------------------------------------------- Alibaba, DLRM

DLRM = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,"
    "memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time"
)


def an_instance(name="i_1", app="app_1", most="-1", *, created="", scheduled="", deleted="", cpu="2"):
    return f"{name},CN,{app},{cpu},{cpu},1,1,25,25,4.0,4.0,10.0,10.0,{most},{created},{scheduled},{deleted}"


def dlrm(folder, *rows, header=DLRM, **entry):
    put(folder, "t.csv", "\n".join([header, *rows, ""]))
    return bring(folder, alibaba_dlrm="t.csv", **entry)


@pytest.mark.parametrize(
    ("created", "scheduled", "deleted", "at", "seconds"),
    [
        pytest.param("100.0", "130.0", "200.0", 100.0, 70.0, id="from where it was placed"),
        pytest.param("100", "", "200", 100.0, 100.0, id="never placed"),
        pytest.param("", "", "200", 0.0, 200.0, id="existed before the trace"),
        pytest.param("100", "130", "", 100.0, None, id="outlives the trace"),
        pytest.param("", "", "", 0.0, None, id="always there"),
    ],
)
def test_when_an_instance_comes_and_goes(tmp_path, created, scheduled, deleted, at, seconds):
    (arrival,) = dlrm(tmp_path, an_instance(created=created, scheduled=scheduled, deleted=deleted)).arrivals

    assert (at, seconds) == (arrival.at, arrival.life.seconds)


def test_an_instance_asks_for_what_the_trace_says(tmp_path):
    (arrival,) = dlrm(tmp_path, an_instance()).arrivals

    asked = {"cpu": 2, "memory": 4 * GIB, "ephemeral-storage": 10 * GIB, "nvidia.com/gpu": 1, "rdma/percent": 25}
    assert amounts(asked) == arrival.pod.requests
    assert ("i-1", "app-1") == (arrival.pod.name, arrival.pod.labels["app"])


def test_an_application_with_one_instance_per_node_keeps_apart_and_other_limits_are_noted(tmp_path):
    rows = [an_instance("i_1", "a", "1"), an_instance("i_2", "b", "2"), an_instance("i_3", "c")]

    imported = dlrm(tmp_path, *rows)

    assert [1, 0, 0] == [len(one.pod.repels) for one in imported.arrivals]
    assert [f"{tmp_path}/t.csv: 1 applications allow several, but not any number of, pods on a node; ignored"] == list(
        imported.notes
    )


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        pytest.param([an_instance(created="-5")], "t.csv:2: creation_time: '-5' is negative", id="negative time"),
        pytest.param([an_instance(created="nan")], "t.csv:2: creation_time: 'nan' is not a number", id="NaN"),
        pytest.param([an_instance(deleted="inf")], "t.csv:2: deletion_time: 'inf' is not a number", id="infinity"),
        pytest.param([an_instance(cpu="1e300")], "t.csv:2: cpu_request: '1e300' is too large", id="too large"),
        pytest.param([an_instance(cpu="")], "t.csv:2: cpu_request: is empty", id="empty"),
        pytest.param([an_instance(deleted="1e12")], "t.csv:2: deletion_time: '1e12' is too long", id="too long"),
        pytest.param(
            [an_instance(created="9", deleted="5")],
            "t.csv:2: deletion_time: 5 is before the instance began, at 9",
            id="ends before it begins",
        ),
        pytest.param(
            [an_instance(), an_instance()],
            "t.csv:3: instance_sn: there is a second 'i_1', the first is on line 2",
            id="2",
        ),
        pytest.param([an_instance()[:20]], "t.csv:2: has 7 of 17 fields: was the file cut short", id="cut short"),
        pytest.param(['"open'], "t.csv:2: is not a line of a CSV table", id="an open quote"),
    ],
)
def test_what_is_wrong_with_a_row(tmp_path, rows, told):
    put(tmp_path, "t.csv", "\n".join([DLRM, *rows]))

    (mistake,) = refused(tmp_path, alibaba_dlrm="t.csv")

    assert mistake.startswith(told), mistake


def test_the_mistakes_of_all_rows_are_told_together_up_to_a_hundred(tmp_path):
    put(tmp_path, "t.csv", "\n".join([DLRM, *(an_instance(f"i{number}", created="x") for number in range(150))]))

    told = refused(tmp_path, alibaba_dlrm="t.csv")

    assert [f"t.csv:{line}" for line in range(2, 102)] == [one.partition(": ")[0] for one in told]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param("", ["t.csv: is empty: the first line names the columns instance_sn"], id="empty"),
        pytest.param(
            f"{DLRM},color", ["t.csv:1: unknown column 'color'; choose from instance_sn"], id="an unknown column"
        ),
        pytest.param(
            DLRM.replace("role", "rloe"),
            [
                "t.csv:1: has no column role; is this the right file?",
                "t.csv:1: unknown column 'rloe'; did you mean 'role'?",
            ],
            id="a misspelled column",
        ),
        pytest.param(f"{DLRM},role", ["t.csv:1: two columns have the same name"], id="a column twice"),
        pytest.param(DLRM.encode("utf-16"), ["t.csv:1: is not text in UTF-8"], id="another encoding"),
        pytest.param(b"a" * 2**21, ["t.csv:1: has a line of more than 1048576 bytes"], id="an endless line"),
        pytest.param(gzip.compress(DLRM.encode())[:-4], ["t.csv: is truncated in its compressed data"], id="cut gzip"),
    ],
)
def test_what_is_no_such_table(tmp_path, content, told):
    put(tmp_path, "t.csv", content)

    mistakes = refused(tmp_path, alibaba_dlrm="t.csv")

    assert [True] * len(told) == [one.startswith(start) for one, start in zip(mistakes, told, strict=True)], mistakes


def test_pods_larger_than_the_largest_node_are_told_once_for_each_resource(tmp_path):
    rows = [an_instance(f"i{number}", cpu=str(number)) for number in range(1, 10)]
    put(tmp_path, "t.csv", "\n".join([DLRM, *rows]))
    nodes = NodesEntry(count=2, cpu=4, memory="8Gi", resources={"nvidia.com/gpu": 1, "ephemeral-storage": "100Gi"})

    told = refused(tmp_path, alibaba_dlrm="t.csv", nodes=nodes)

    # The largest of them, on line 10, asks for 9.
    hint = "take larger nodes, or leave this instance out"
    assert [
        f"t.csv:2: the pod asks for 25 rdma/percent, but no node has any; {hint}",
        f"t.csv:10: the pod asks for 9 cpu, but the largest node, node1, has 4; {hint}",
    ] == told


# -------------------------------------------------------------------------------------------------------- Alibaba, GPU

PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
NODES = "sn,cpu_milli,memory_mib,gpu,model"


def gpu(folder, *rows, nodes=("n-1,32000,1024,2,V100",), **entry):
    put(folder, "p.csv", "\n".join([PODS, *rows, ""]))
    put(folder, "n.csv", "\n".join([NODES, *nodes, ""]))
    return bring(folder, alibaba_gpu=GpuFiles(pods="p.csv", nodes="n.csv"), **entry)


def test_a_share_of_gpus_is_counted_in_thousandths(tmp_path):
    imported = gpu(tmp_path, "p-1,12000,512,1,460,,LS,Running,5,105,15")

    (arrival,), (node,) = imported.arrivals, imported.nodes
    assert (5.0, 90.0, 0) == (arrival.at, arrival.life.seconds, arrival.life.failures)
    assert (("alibabacloud.com/gpu-milli", 460), ("cpu", 12000), ("memory", 2**29)) == arrival.pod.requests
    assert {"alibabacloud.com/gpu-milli": 2000, "cpu": 32000, "memory": 2**30, "pods": 110} == dict(node.allocatable)


@pytest.mark.parametrize(
    ("spec", "model", "fits"), [("", "T4", True), ("V100|T4", "T4", True), ("V100|T4", "A10", False)]
)
def test_a_pod_goes_only_where_its_model_is(tmp_path, spec, model, fits):
    imported = gpu(tmp_path, f"p-1,1,1,1,1000,{spec},LS,Running,0,9,0", nodes=[f"n-1,32000,1024,2,{model}"])

    required = imported.arrivals[0].pod.required_nodes
    assert fits == (required is None or required.matches(imported.nodes[0].labels))


def test_failed_pods_fail_and_pods_that_were_never_placed_are_noted(tmp_path):
    imported = gpu(tmp_path, "p-1,1,1,0,0,,BE,Failed,0,9,1", "p-2,1,1,0,0,,BE,Pending,2,9,")

    assert [-1, 0] == [one.life.failures for one in imported.arrivals]
    assert [f"{tmp_path}/p.csv: 1 pod was never placed in the trace; they run as long as they waited"] == list(
        imported.notes
    )


def test_a_node_that_is_there_twice_is_refused(tmp_path):
    put(tmp_path, "p.csv", f"{PODS}\n")
    put(tmp_path, "n.csv", f"{NODES}\na,1,1,0,\na,1,1,0,\n")

    assert ["n.csv:3: sn: there is a second 'a', the first is on line 2"] == refused(
        tmp_path, alibaba_gpu=GpuFiles(pods="p.csv", nodes="n.csv")
    )


# ------------------------------------------------------------------------------------------------------ Azure Functions

RUNS = "HashOwner,HashApp,HashFunction,Average,Count,Minimum,Maximum," + ",".join(
    f"percentile_Average_{percent}" for percent in (0, 1, 25, 50, 75, 99, 100)
)
SIZES = "HashOwner,HashApp,SampleCount,AverageAllocatedMb_pct99"
TABLES = FunctionFiles(invocations="i.csv", durations="d.csv", memory="m.csv")


def azure_files(folder, calls, *, form="minute_{}", milliseconds="1000"):
    minutes = len(next(iter(calls.values())))
    header = ",".join(["HashOwner,HashApp,HashFunction", *(form.format(n) for n in range(1, minutes + 1))])
    rows = [",".join(["o", f"app-{name}", name, *map(str, counts)]) for name, counts in calls.items()]
    put(folder, "i.csv", "\n".join([header, *rows, ""]))
    put(folder, "d.csv", "\n".join([RUNS, *(f"o,app-{n},{n},1,1,1,1{f',{milliseconds}' * 7}" for n in calls), ""]))
    put(folder, "m.csv", "\n".join([SIZES, *(f"o,app-{n},1,120" for n in calls), ""]))


def azure(folder, calls, *, form="minute_{}", milliseconds="1000", **entry):
    azure_files(folder, calls, form=form, milliseconds=milliseconds)
    return bring(folder, azure_functions=TABLES, **entry)


@pytest.mark.parametrize("form", ["minute_{}", "{}"])
def test_calls_come_within_their_minute(tmp_path, form):
    arrivals = azure(tmp_path, {"f": [2, 0, 3]}, form=form).arrivals

    assert [0, 0, 2, 2, 2] == [int(one.at // 60) for one in arrivals]
    assert {1.0} == {one.life.seconds for one in arrivals}
    assert {(("cpu", 100), ("memory", 120_000_000))} == {one.pod.requests for one in arrivals}


def test_a_worker_is_kept_for_the_next_call(tmp_path):
    calls = {"f": [4] * 10 + [0] * 10 + [1]}

    alone = azure(tmp_path, calls).arrivals
    kept = azure(tmp_path, calls, keep_alive=300.0, milliseconds="1").arrivals

    # Forty calls in ten minutes keep one worker; the last call, ten minutes later, needs another.
    assert (41, 2) == (len(alone), len(kept))
    assert [True, True] == [(one.life.seconds or 0.0) > 300 for one in kept]


def test_two_calls_at_once_need_two_workers(tmp_path):
    kept = azure(tmp_path, {"f": [5]}, keep_alive=60.0, milliseconds="120000").arrivals

    assert 5 == len(kept)


def test_more_functions_leave_the_calls_of_the_others_as_they_were(tmp_path):
    few = azure(tmp_path, {"f": [3]}).arrivals
    many = azure(tmp_path, {"f": [3], "g": [2]}).arrivals

    assert [one.at for one in few] == [one.at for one in many if one.pod.labels["app"] == "f"]


def test_a_sample_has_as_many_functions_and_minutes_as_asked_for(tmp_path):
    calls = {f"f{number}": [1, 1] for number in range(20)}

    arrivals = azure(tmp_path, calls, functions=5, minutes=1).arrivals

    assert (5, True) == (len({one.pod.labels["app"] for one in arrivals}), all(one.at < 60 for one in arrivals))


@pytest.mark.parametrize(
    ("share", "value"),
    [(0.0, 0.0), (0.01, 1.0), (0.13, 13.0), (0.25, 25.0), (0.745, 74.5), (0.999, 99.9), (1.0, 100.0)],
)
def test_durations_lie_on_straight_lines_between_the_percentiles(share, value):
    assert value == pytest.approx(quantile((0.0, 1.0, 25.0, 50.0, 75.0, 99.0, 100.0), share))


@pytest.mark.parametrize(
    ("calls", "entry", "told"),
    [
        pytest.param({"f": ["-1"]}, {}, "i.csv:2: minute_1: '-1' is negative", id="negative"),
        pytest.param({"f": ["x"]}, {}, "i.csv:2: minute_1: 'x' is not a number", id="no number"),
        pytest.param({"f": ["1.5"]}, {}, "i.csv:2: minute_1: '1.5' is not a whole number", id="half a call"),
        pytest.param({"f": ["2000000"]}, {}, "i.csv:2: minute_1: 2000000 calls in a minute are more", id="in a minute"),
        pytest.param(
            {"f": ["900000", "900000"]},
            {},
            "i.csv: 1800000 calls are more than 1000000; say functions or minutes",
            id="in all",
        ),
        pytest.param(
            {"f": [1]}, {"minutes": 9}, "scenario.yaml:7: minutes: the table has 1 minutes", id="too few minutes"
        ),
        pytest.param({"f": [1]}, {"until": 9}, "scenario.yaml:7: until: means nothing here", id="an option of others"),
    ],
)
def test_what_is_wrong_with_calls(tmp_path, calls, entry, told):
    azure_files(tmp_path, calls)

    (mistake,) = refused(tmp_path, azure_functions=TABLES, **entry)

    assert mistake.startswith(told), mistake


def test_percentiles_rise(tmp_path):
    azure_files(tmp_path, {"f": [1]})
    put(tmp_path, "d.csv", f"{RUNS}\no,a,f,1,1,1,1,9,8,7,6,5,4,3\n")

    assert ["d.csv:2: percentile_Average_0: the percentiles do not rise from the 0th to the 100th"] == refused(
        tmp_path, azure_functions=TABLES
    )


def test_a_function_without_durations_is_left_out_and_noted(tmp_path):
    azure_files(tmp_path, {"f": [1], "g": [1]})
    put(tmp_path, "d.csv", f"{RUNS}\no,a,f,1,1,1,1,1,1,1,1,1,1,1\n")

    imported = bring(tmp_path, azure_functions=TABLES)

    assert ["f"] == [one.pod.labels["app"] for one in imported.arrivals]
    assert [f"{tmp_path}/i.csv: 1 functions have no durations and are left out"] == list(imported.notes)
