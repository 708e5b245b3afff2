"""The workloads of the QoS-driven scheduling experiments: rows become controllers that promise an availability."""

import pytest

from lamina.model.pod import PodTerm
from lamina.model.resources import amounts
from lamina.model.selectors import LabelSelector
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads import ScenarioEvent
from tests.unit.simulator.workloads.imports.harness import bring, put, refused

ROW = "3,7,7,any,0,11,7200,-1,0.375,0.5,prod,0.95"
COLUMNS = (
    "submit, task, job, user, antiAffinity, priority, duration, end, cpu, memory, class, slo, "
    "kind, replicas, completions, approach, nodePort, taskSeconds"
)


def a_row(**changed):
    """A row with all columns; some fields replaced."""
    fields = dict(zip(COLUMNS.split(", "), [*ROW.split(","), "deployment", "1", "1", "average", "", ""], strict=True))
    return ",".join({**fields, **changed}.values())


def table(folder, *rows, **entry):
    put(folder, "rows.csv", "".join(f"{row}\n" for row in rows))
    return bring(folder, qos_workload="rows.csv", **{"image": "web:1", **entry})


def test_a_row_is_a_deployment_with_one_pod_that_promises_an_availability(tmp_path):
    (spec,) = table(tmp_path, ROW, at=10.0, scheduler="second").controllers

    assert ("Deployment", "prod-7", 13.0, 1) == (spec.kind, spec.name, spec.at, spec.replicas)
    assert PodLifecycle(restart="Always") == spec.life
    template = spec.template
    assert amounts({"cpu": "375m", "memory": 500_000_000}) == template.requests
    assert {"controller": "prod-7", "slo": "0.95"} == template.annotations
    assert {"app": "prod-7", "class": "prod"} == template.labels
    assert (11, "second", ()) == (template.priority, template.scheduler_name, template.repels)


def test_a_job_has_parallel_pods_and_completions_and_replaces_what_is_preempted(tmp_path):
    row = a_row(kind="job", replicas="4", completions="800", approach="aggregate", taskSeconds="180")
    (spec,) = table(tmp_path, row).controllers

    assert ("Job", 800, 4, True) == (spec.kind, spec.replicas, spec.parallelism, spec.ignore_disruptions)
    assert 180.0 == spec.life.seconds
    assert "aggregate" == spec.template.annotations["qosMeasuring"]


def test_the_pods_of_a_row_with_anti_affinity_are_on_different_nodes(tmp_path):
    (spec,) = table(tmp_path, a_row(antiAffinity="1", replicas="4")).controllers

    assert (PodTerm("kubernetes.io/hostname", LabelSelector((("app", "prod-7"),))),) == spec.template.repels


def test_a_deployment_is_scaled_to_zero_at_its_end(tmp_path):
    assert (ScenarioEvent(110.0, "scale", "prod-7"),) == table(tmp_path, a_row(end="100"), at=10.0).events


def test_the_first_rows_by_time_are_imported_up_to_the_limit(tmp_path):
    found = table(tmp_path, a_row(submit="9", job="1"), a_row(submit="2", job="2"), limit=1, name="x")

    assert ["x-prod-2"] == [spec.name for spec in found.controllers]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        pytest.param("1,2", f"has 2 fields, and a row has 12 to 18: {COLUMNS}", id="too few fields"),
        pytest.param(a_row() + ",1", f"has 19 fields, and a row has 12 to 18: {COLUMNS}", id="too many fields"),
        pytest.param(a_row(submit="x"), "submit: 'x' is not a number", id="a time that is none"),
        pytest.param(a_row(submit=""), "submit: is empty: every row needs one", id="no time"),
        pytest.param(a_row(antiAffinity="2"), "antiAffinity: 2 is neither 0 (no) nor 1 (yes)", id="a flag"),
        pytest.param(a_row(priority="1.5"), "priority: '1.5' is not a whole number", id="half a priority"),
        pytest.param(
            a_row(priority="9999999999"),
            "priority: 9999999999 is above the largest priority, 2147483647",
            id="a large priority",
        ),
        pytest.param(
            a_row(end="1"), "end: 1 is before the row's submission at 3; write -1 for no end", id="an end before it"
        ),
        pytest.param(
            a_row(slo="90"), "slo: 90 is above 1; write the availability as a share, for example 0.9", id="percent"
        ),
        pytest.param(
            a_row(kind="cron"), "kind: 'cron' is not a kind of controller; write deployment or job", id="a kind"
        ),
        pytest.param(
            a_row(approach="mean"),
            "approach: 'mean' is no approach; write independent, average, concurrent, aggregate",
            id="an approach",
        ),
        pytest.param(
            a_row(kind="job", duration="0"),
            "taskSeconds: the pods of a job have to run for more than 0 seconds",
            id="a job without time",
        ),
    ],
)
def test_what_is_wrong_with_a_row_is_told_beside_the_mistakes_of_other_rows(tmp_path, row, told):
    good = ROW.replace("7,7,", "9,9,", 1)
    put(tmp_path, "rows.csv", f"{row}\n{good}\n{good}\n")

    assert [
        f"rows.csv:1: {told}",
        "rows.csv:3: job: there is a second 'prod-9', the first is on line 2; number the jobs",
    ] == refused(tmp_path, qos_workload="rows.csv", image="web:1")


def test_an_empty_table_is_refused(tmp_path):
    put(tmp_path, "rows.csv", "\n")

    assert [f"rows.csv: is empty; a row has the columns {COLUMNS}"] == refused(tmp_path, qos_workload="rows.csv")


def test_a_row_larger_than_every_node_is_refused(tmp_path):
    put(tmp_path, "rows.csv", a_row(cpu="4"))

    (told,) = refused(tmp_path, qos_workload="rows.csv", nodes=2)
    assert told.startswith("rows.csv:1: ")
