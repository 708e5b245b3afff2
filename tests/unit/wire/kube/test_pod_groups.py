"""PodGroups, Workloads and Queues in the dialects of several schedulers."""

import json

import pytest

from lamina.model.pod_groups import PodGroup, Queue, Workload, gang_annotations, group_of
from lamina.model.resources import amounts
from lamina.services.informers.watched_resources import object_resources
from lamina.testing import a_pod
from lamina.wire.errors import WireError
from lamina.wire.kube.cluster_object import decode_cluster_object

META = {"name": "g", "namespace": "team"}


def decoded(kind: str, spec: dict[str, object], **more: object) -> object:
    return decode_cluster_object(kind, json.dumps({"kind": kind, "metadata": META, "spec": spec, **more}).encode())


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"minMember": 3, "minResources": {"cpu": "2"}, "scheduleTimeoutSeconds": 10},
            PodGroup(namespace="team", name="g", min_member=3, min_resources=amounts({"cpu": 2}), timeout=10.0),
            id="scheduler-plugins",
        ),
        pytest.param(
            {"minMember": 2, "queue": "gold", "priorityClassName": "high", "minTaskMember": {"ps": 1}},
            PodGroup(namespace="team", name="g", min_member=2, queue="gold"),
            id="Volcano",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": 4}}},
            PodGroup(namespace="team", name="g", min_member=4),
            id="Kubernetes 1.36",
        ),
        pytest.param({"schedulingPolicy": {"basic": {}}}, PodGroup(namespace="team", name="g"), id="no gang"),
        pytest.param({"minMember": -1}, PodGroup(namespace="team", name="g"), id="a minimum below one"),
    ],
)
def test_a_pod_group_is_read_in_every_dialect(spec, want):
    assert want == decoded("PodGroup", spec)


def test_a_workload_and_a_queue_are_read():
    groups = [{"name": "w", "policy": {"gang": {"minCount": 2}}}, {"name": "b", "policy": {"basic": {}}}]

    assert Workload(namespace="team", name="g", gangs=(("w", 2), ("b", 1))) == decoded(
        "Workload", {"podGroups": groups}
    )
    assert Queue(name="g", weight=3, capability=amounts({"cpu": 8}), reclaimable=False, open=False) == decoded(
        "Queue", {"weight": 3, "capability": {"cpu": "8"}, "reclaimable": False}, status={"state": "Closed"}
    )


def test_a_minimum_that_is_no_number_is_refused():
    with pytest.raises(WireError, match="PodGroup"):
        decoded("PodGroup", {"minMember": "three"})


def test_gangs_are_watched_in_every_dialect_and_none_has_to_be_installed():
    watched = object_resources({PodGroup, Workload, Queue})

    assert 9 == len({one.resource.path for one in watched}) == len({one.resource.kind for one in watched})
    assert not any(one.required for one in watched)
    assert "/apis/scheduling.x-k8s.io/v1alpha1/podgroups" in {one.resource.path for one in watched}


@pytest.mark.parametrize(
    ("annotations", "want"),
    [
        pytest.param(gang_annotations("g", 4, 2.5, "gold"), ("default/g", 4, 3.0), id="as Lamina writes them"),
        pytest.param({"lamina.dev/gang": "g"}, ("default/g", 1, None), id="no minimum"),
        pytest.param(
            {"lamina.dev/gang": "g", "lamina.dev/gang-min-member": "9" * 40}, ("default/g", 1, None), id="an absurd one"
        ),
    ],
)
def test_annotations_alone_can_describe_a_gang(annotations, want):
    ref = group_of(a_pod("p", annotations=annotations))

    assert ref is not None
    assert want == (ref.key, ref.min_member, ref.timeout)
