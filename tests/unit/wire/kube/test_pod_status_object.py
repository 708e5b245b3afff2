"""What a pod's status says: how far its life has come, and what it takes of its node while it is resized."""

import json

import pytest

from lamina.wire.errors import WireError
from lamina.wire.kube.codec import decode_pod

CREATED = "2026-03-01T12:30:05Z"
AT = 1772368205.0


def read(spec=None, status=None, **metadata):
    """The pod that these describe."""
    written = {"metadata": {"creationTimestamp": CREATED, **metadata}, "spec": spec or {}, "status": status or {}}
    return decode_pod(json.dumps(written, separators=(",", ":")).encode())


def a_container(name, cpu, **more):
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}


def a_status(name, allocated, running):
    """What the node says of a container; None: nothing."""
    found = {"name": name, "state": {"running": {}}}
    if allocated is not None:
        found["allocatedResources"] = {"cpu": allocated}
    if running is not None:
        found["resources"] = {"requests": {"cpu": running}}
    return found


TWO = a_container("c", "2")


def resized(*statuses, containers=(TWO,), init=(), conditions=(), on="n", status=None, **spec):
    """The cpu that a pod counts for."""
    pod = read(
        {"nodeName": on, "containers": list(containers), "initContainers": list(init), **spec},
        {"containerStatuses": list(statuses), "conditions": list(conditions), **(status or {})},
    )
    return dict(pod.requests)["cpu"]


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


@pytest.mark.parametrize(
    ("allocated", "running", "conditions", "expected"),
    [
        pytest.param("2", "2", [], 2000, id="nothing is resized"),
        pytest.param("3", "3", [], 3000, id="a smaller size is not done yet"),
        pytest.param("2", "3", [], 3000, id="a smaller size is allocated and not in force yet"),
        pytest.param("3", "2", [], 3000, id="more is allocated than is in force"),
        pytest.param("1", "1", [], 2000, id="a larger size is not done yet"),
        pytest.param("1", "1", [DEFERRED], 2000, id="a larger size is put off"),
        pytest.param("1", "1", [INFEASIBLE], 1000, id="a larger size is infeasible"),
        pytest.param("3", "1", [INFEASIBLE], 3000, id="infeasible, and the allocated size is not in force yet"),
        pytest.param("3", None, [], 2000, id="what is in force is not known"),
        pytest.param(None, "3", [], 3000, id="what is allocated is not known"),
        pytest.param(None, None, [INFEASIBLE], 2000, id="the node says nothing"),
    ],
)
def test_a_resized_container_counts_with_the_largest_of_what_it_asks_for_and_what_it_has(
    allocated, running, conditions, expected
):
    assert expected == resized(a_status("c", allocated, running), conditions=conditions)


def test_a_resize_that_an_older_node_calls_infeasible_does_not_count():
    assert 1000 == resized(a_status("c", "1", "1"), status={"resize": "Infeasible"})


def test_a_pod_without_a_node_counts_with_what_it_asks_for():
    assert 2000 == resized(a_status("c", "3", "3"), on="")


def test_each_container_counts_with_its_own_largest_size():
    containers = (a_container("a", "1"), a_container("b", "2"))

    # 4 held of 1, and 2 asked for with 1 held.
    assert 6000 == resized(a_status("b", "1", "1"), a_status("a", "4", "4"), containers=containers)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param("Always", 5000, id="a sidecar keeps what it holds: 2 + 3"),
        pytest.param(None, 2000, id="another init container is over"),
    ],
)
def test_of_init_containers_only_sidecars_are_resized(policy, expected):
    init = a_container("i", "1", restartPolicy=policy)

    assert expected == resized(init=[init], status={"initContainerStatuses": [a_status("i", "3", "3")]})


@pytest.mark.parametrize(
    ("asked", "conditions", "expected"),
    [
        pytest.param("1", [], 4000, id="a smaller size is not done yet"),
        pytest.param("8", [], 8000, id="a larger size is not done yet"),
        pytest.param("8", [INFEASIBLE], 4000, id="a larger size is infeasible"),
        pytest.param(None, [], 2000, id="what the pod does not ask for as a whole is counted by container"),
    ],
)
def test_a_pod_resized_as_a_whole_counts_with_the_largest_size(asked, conditions, expected):
    held = {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "4"}}
    asking = {} if asked is None else {"resources": {"requests": {"cpu": asked}}}

    assert expected == resized(conditions=conditions, status=held, **asking)


def test_a_resized_pod_says_what_its_containers_ask_for():
    pod = read(
        {"nodeName": "n", "containers": [a_container("c", "1")]}, {"containerStatuses": [a_status("c", "3", "3")]}
    )

    assert (("cpu", 1000),) == pod.containers[0].requests
    assert (("cpu", 3000),) == pod.requests
    # A container that asks for no memory counts 200 MiB where nodes are ranked.
    assert (("cpu", 3000), ("memory", 200 * 1024**2)) == pod.scoring_requests


def test_limits_of_a_resized_container_are_the_larger_of_both():
    container = {"name": "c", "resources": {"limits": {"cpu": "2"}}}
    status = {"containerStatuses": [{"name": "c", "resources": {"limits": {"cpu": "3"}}}]}

    assert (("cpu", 3000),) == read({"nodeName": "n", "containers": [container]}, status).limits


@pytest.mark.parametrize(
    ("status", "message"),
    [
        pytest.param({"containerStatuses": [a_status("c", "x", "1")]}, "allocatedResources", id="allocated"),
        pytest.param({"containerStatuses": [a_status("c", "1", "x")]}, "containerStatuses", id="in force"),
        pytest.param({"conditions": [{"type": 1}]}, "conditions", id="a condition"),
    ],
)
def test_a_status_that_makes_no_sense_is_refused_with_its_field(status, message):
    with pytest.raises(WireError, match=message):
        read({"nodeName": "n", "containers": [a_container("c", "1")]}, status)


# ------------------------------------------------------------------------------------------------------------ life


def a_condition(kind, status="True", at="2026-03-01T12:30:07Z"):
    return {"type": kind, "status": status, "lastTransitionTime": at, "lastProbeTime": None}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param([], (0.0, False, 0.0), id="nothing is known"),
        pytest.param([a_condition("PodScheduled")], (AT + 2, False, 0.0), id="bound"),
        pytest.param([a_condition("PodScheduled", at=CREATED)], (AT, False, 0.0), id="bound in the second it was made"),
        pytest.param([a_condition("PodScheduled", "False")], (0.0, False, 0.0), id="not bound yet"),
        pytest.param([a_condition("Ready"), a_condition("PodScheduled")], (AT + 2, True, AT + 2), id="ready"),
        pytest.param([a_condition("Ready", "False")], (0.0, False, 0.0), id="not ready any more"),
        pytest.param([{"type": "Ready", "status": "True"}], (0.0, True, 0.0), id="ready, and no time is given"),
    ],
)
def test_conditions_say_when_a_pod_was_bound_and_became_ready(conditions, expected):
    pod = read(status={"conditions": conditions})

    assert expected == (pod.bound_at, pod.ready, pod.ready_at)


def ended(*times):
    return [{"name": "c", "state": {"terminated": {"finishedAt": time}}} for time in times]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"phase": "Running", "containerStatuses": ended(CREATED)}, (False, False, 0.0), id="running"),
        pytest.param(
            {"phase": "Succeeded", "containerStatuses": ended(CREATED, "2026-03-01T12:30:09Z")},
            (True, False, AT + 4),
            id="ended well, when its last container did",
        ),
        pytest.param(
            {"phase": "Failed", "initContainerStatuses": ended("2026-03-01T12:30:06Z")},
            (True, True, AT + 1),
            id="ended badly, in an init container",
        ),
        pytest.param({"phase": "Failed"}, (True, True, 0.0), id="ended, and no time is given"),
    ],
)
def test_the_status_says_how_and_when_a_pod_ended(status, expected):
    pod = read(status=status)

    assert expected == (pod.finished, pod.failed, pod.ended_at)


@pytest.mark.parametrize(
    ("grace", "expected"),
    [pytest.param(30, AT - 30, id="a grace period"), pytest.param(None, AT, id="none given")],
)
def test_a_deletion_began_a_grace_period_before_its_time(grace, expected):
    pod = read(deletionTimestamp=CREATED, deletionGracePeriodSeconds=grace)

    assert (True, expected) == (pod.deleting, pod.deleting_since)
