"""Snapshots and records of kube-scheduler-simulator: objects, times, and what is left out."""

import json

import pytest

from lamina.simulator.workloads.imports.kube_scheduler_simulator import is_record
from tests.unit.simulator.workloads.imports.harness import bring, put, refused

RESULT = "kube-scheduler-simulator.sigs.k8s.io/score-result"


def a_node(name="n1", cpu="4", **spec):
    return {
        "metadata": {"name": name, "labels": {"disk": "ssd"}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def a_pod(name="p1", phase="Pending", **spec):
    container = {"name": "c", "image": "web:1", "resources": {"requests": {"cpu": "500m"}}}
    return {
        "metadata": {"name": name, "namespace": "default", "annotations": {RESULT: "x" * 999, "team": "a"}},
        "spec": {"containers": [container], **spec},
        "status": {"phase": phase},
    }


def a_snapshot(**more):
    empty: dict[str, object] = {
        "pvs": [],
        "pvcs": [],
        "storageClasses": None,
        "priorityClasses": [],
        "schedulerConfig": None,
        "namespaces": [],
    }
    return {**empty, "nodes": [a_node()], "pods": [], **more}


def brought(folder, content, **entry):
    text = "\n".join(map(json.dumps, content)) if isinstance(content, list) else json.dumps(content, indent=1)
    put(folder, "file.json", text)
    return bring(folder, kube_scheduler_simulator="file.json", **entry)


def record(second, event, resource, kind=""):
    kind = kind or ("Node" if "allocatable" in resource.get("status", {}) else "Pod")
    time = f"2026-03-01T12:{second // 60:02}:{second % 60:02}.5Z"
    return {"time": time, "event": event, "resource": {"apiVersion": "v1", "kind": kind, **resource}}


def gone(name, namespace="default"):
    return {"metadata": {"name": name, "namespace": namespace}}


# -- snapshots -----------------------------------------------------------------------------------------------------------


def test_a_snapshot_has_its_nodes_and_pods_from_the_start(tmp_path):
    found = brought(tmp_path, a_snapshot(pods=[a_pod(nodeName="n1"), a_pod("done", phase="Succeeded")]), at=3.0)

    assert [("n1", {"disk": "ssd"})] == [(node.name, node.labels) for node in found.nodes]
    (arrival,) = found.arrivals
    assert (3.0, "p1", "", None) == (arrival.at, arrival.pod.name, arrival.pod.node_name, arrival.life.seconds)
    assert ["1 × Pod that has ended left out"] == [note.partition(": ")[2] for note in found.notes]


def test_the_results_in_annotations_are_dropped(tmp_path):
    (arrival,) = brought(tmp_path, a_snapshot(pods=[a_pod()])).arrivals

    assert {"team": "a"} == arrival.pod.annotations


def test_a_pod_has_the_priority_of_its_class(tmp_path):
    classes = [{"metadata": {"name": "high"}, "value": 1000}, {"metadata": {"name": "odd"}, "value": "many"}]
    pods = [
        a_pod("a", priorityClassName="high"),
        a_pod("b", priorityClassName="high", priority=7),
        a_pod("c", priorityClassName="odd"),
    ]

    found = brought(tmp_path, a_snapshot(pods=pods, priorityClasses=classes))

    assert [1000, 7, 0] == [one.pod.priority for one in found.arrivals]


def test_volumes_claims_and_classes_are_objects(tmp_path):
    more = {
        "pvs": [{"metadata": {"name": "v"}, "spec": {"capacity": {"storage": "1Gi"}}}],
        "pvcs": [
            {"metadata": {"name": "c", "namespace": "default"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
        ],
        "storageClasses": [{"metadata": {"name": "s"}, "provisioner": "x"}],
    }

    found = brought(tmp_path, a_snapshot(**more))

    assert ["PersistentVolume", "PersistentVolumeClaim", "StorageClass"] == [
        one.manifest["kind"] for one in found.objects
    ]


def test_what_a_snapshot_has_beyond_that_is_noted(tmp_path):
    found = brought(tmp_path, a_snapshot(schedulerConfig={"profiles": []}, namespaces=[{"metadata": {"name": "x"}}]))

    assert [
        "its schedulerConfig is not used; save it as a file and name it with --profile",
        "1 namespace left out: a simulation needs none",
    ] == [note.partition(": ")[2] for note in found.notes]


# -- records -------------------------------------------------------------------------------------------------------------


def test_a_record_is_played_at_its_own_times(tmp_path):
    """Node n1 is there from the start; n2 joins 60 s after the first pod came, is cordoned, and leaves."""
    lines = [
        record(0, "Add", a_node("n1")),
        record(2, "Add", a_pod("first")),
        record(12, "Add", a_pod("second")),
        record(62, "Add", a_node("n2")),
        record(70, "Update", a_node("n2")),
        record(72, "Update", a_node("n2", unschedulable=True)),
        record(80, "Update", a_node("n2")),
        record(92, "Delete", gone("n2"), "Node"),
    ]

    found = brought(tmp_path, lines, at=100.0)

    assert ["n1"] == [node.name for node in found.nodes]
    assert [("first", 100.0), ("second", 110.0)] == [(one.pod.name, one.at) for one in found.arrivals]
    assert [("join", 160.0), ("cordon", 170.0), ("uncordon", 178.0), ("drop", 190.0)] == [
        (event.kind, event.at) for event in found.events
    ]
    assert {"n2"} == {event.name for event in found.events}


def test_a_pod_runs_as_long_as_it_ran_in_the_record(tmp_path):
    lines = [
        record(0, "Add", a_node()),
        record(1, "Add", a_pod("good")),
        record(1, "Add", a_pod("bad")),
        record(1, "Add", a_pod("service")),
        record(4, "Update", a_pod("good", "Running")),
        record(5, "Update", a_pod("bad", "Running")),
        record(6, "Update", a_pod("service", "Running")),
        record(34, "Update", a_pod("good", "Succeeded")),
        record(40, "Update", a_pod("bad", "Failed")),
        record(41, "Delete", gone("good")),
        record(51, "Delete", gone("service")),
    ]

    found = brought(tmp_path, lines)

    assert {"good": (30.0, 0), "bad": (35.0, -1), "service": (None, 0)} == {
        one.pod.name: (one.life.seconds, one.life.failures) for one in found.arrivals
    }
    # A pod that has ended needs no removal.
    assert [("remove", "service", 50.0)] == [(event.kind, event.name, event.at) for event in found.events]


def test_a_pod_that_comes_again_under_its_name_is_another_pod(tmp_path):
    lines = [
        record(0, "Add", a_node()),
        record(1, "Add", a_pod("p")),
        record(5, "Delete", gone("p")),
        record(6, "Add", a_pod("p")),
    ]

    found = brought(tmp_path, lines)

    assert [("p", 0.0), ("default-p", 5.0)] == [(one.pod.name, one.at) for one in found.arrivals]
    assert [("p", 4.0)] == [(event.name, event.at) for event in found.events]


def test_objects_of_a_record_come_and_go(tmp_path):
    claim = {"metadata": {"name": "c", "namespace": "default"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    lines = [
        record(0, "Add", {"metadata": {"name": "s"}, "provisioner": "x"}, "StorageClass"),
        record(0, "Add", {"metadata": {"name": "high"}, "value": 9}, "PriorityClass"),
        record(0, "Add", a_node()),
        record(1, "Add", a_pod("p", priorityClassName="high")),
        record(3, "Add", claim, "PersistentVolumeClaim"),
        record(4, "Update", claim, "PersistentVolumeClaim"),
        record(9, "Delete", gone("c"), "PersistentVolumeClaim"),
        record(9, "Add", {"metadata": {"name": "x"}}, "Namespace"),
    ]

    found = brought(tmp_path, lines)

    assert 9 == found.arrivals[0].pod.priority
    assert ["StorageClass"] == [one.manifest["kind"] for one in found.objects]
    assert [("apply", 2.0), ("delete", 8.0)] == [(event.kind, event.at) for event in found.events]
    assert ["1 line left out: PersistentVolumeClaim that changed", "1 line left out: Namespace"] == [
        note.partition(": ")[2] for note in found.notes
    ]


def test_a_pod_may_need_a_node_that_joins_later(tmp_path):
    large = a_pod("large")
    large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "16"
    lines = [record(0, "Add", a_node()), record(1, "Add", large), record(2, "Add", a_node("big", cpu="32"))]

    assert ["large"] == [one.pod.name for one in brought(tmp_path, lines).arrivals]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param("{", "cannot be read as JSON", id="cut short"),
        pytest.param('{"pods": {}}', "pods: Expected `array | null`, got `object`", id="no list"),
        pytest.param(
            '{"nodes": [{"metadata": {"name": "n"}}]}',
            "a node says not what it can give",
            id="a node without resources",
        ),
        pytest.param('{"pods": [{"metadata": {}}]}', "a pod has no name; add metadata.name", id="a pod without a name"),
        pytest.param(
            json.dumps(record(0, "Add", a_node())) + '\n{"time": "x", "event": "Add", "resource": {}}',
            "file.json:2: 'x' is not a time as in 2026-03-01T12:30:05Z",
            id="no time",
        ),
        pytest.param(
            json.dumps(record(0, "Add", a_node()))
            + '\n{"time": "2026-03-01T12:30:05Z", "event": "Grow", "resource": {}}',
            "file.json:2: Invalid enum value 'Grow'",
            id="no event",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path, content, told):
    put(tmp_path, "file.json", content)

    assert told in "\n".join(refused(tmp_path, kube_scheduler_simulator="file.json"))


def test_a_record_is_recognized_by_its_first_line():
    assert is_record(json.dumps(record(0, "Add", a_node())).encode())
    assert not is_record(b'{"pods": []}')
    assert not is_record(b"")
