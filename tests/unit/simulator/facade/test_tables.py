"""Tables: the cells that kubectl shows, compared with those of a real server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.simulator.facade.gang_resources import gang_custom_resources
from lamina.simulator.facade.json_paths import find_values
from lamina.simulator.facade.resource_types import ResourceTypes
from lamina.simulator.facade.table_values import age, human_duration, label_selector_text
from lamina.simulator.facade.tables import render_table

NOW = 1_700_000_000.0
CREATED = "2023-11-14T22:11:20Z"  # 120 seconds before NOW
TYPES = ResourceTypes()
TYPES.add_customs(gang_custom_resources())
MINUTE, HOUR, DAY = 60, 3600, 86_400


def table(kind, found, api_version="v1", include="Metadata"):
    type_ = TYPES.by_kind(api_version, kind)
    metadata = {"name": "x", "creationTimestamp": CREATED, **found.pop("metadata", {})}
    return render_table(type_, [{"kind": kind, "metadata": metadata, **found}], {"resourceVersion": "7"}, NOW, include)


def cells(kind, found, api_version="v1"):
    return table(kind, found, api_version)["rows"][0]["cells"]


def headers(found):
    return [column["name"] + ("*" if column["priority"] else "") for column in found["columnDefinitions"]]


def container(state=None, *, ready=False, restarts=0, name="c", **fields):
    return {"name": name, "state": state or {}, "ready": ready, "restartCount": restarts, **fields}


def ended(code, reason="", signal=0):
    return {"terminated": {"exitCode": code, "reason": reason, "signal": signal, "finishedAt": CREATED}}


def waits(reason):
    return {"waiting": {"reason": reason}}


RUNNING = {"running": {"startedAt": CREATED}}
READY = [{"type": "Ready", "status": "True"}]
GATED = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
DONE = ended(0, "Completed")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(-5, "<invalid>", id="future"),
        pytest.param(-1, "0s", id="a second in the future"),
        pytest.param(0.9, "0s", id="now"),
        pytest.param(119, "119s", id="seconds"),
        pytest.param(120, "2m", id="two minutes"),
        pytest.param(330, "5m30s", id="minutes and seconds"),
        pytest.param(10 * MINUTE + 5, "10m", id="ten minutes"),
        pytest.param(179 * MINUTE, "179m", id="minutes"),
        pytest.param(3 * HOUR, "3h", id="three hours"),
        pytest.param(7 * HOUR + 5 * MINUTE, "7h5m", id="hours and minutes"),
        pytest.param(47 * HOUR, "47h", id="hours"),
        pytest.param(2 * DAY, "2d", id="two days"),
        pytest.param(3 * DAY + 4 * HOUR, "3d4h", id="days and hours"),
        pytest.param(700 * DAY, "700d", id="days"),
        pytest.param(2 * 365 * DAY, "2y", id="two years"),
        pytest.param(3 * 365 * DAY + 40 * DAY, "3y40d", id="years and days"),
        pytest.param(9 * 365 * DAY, "9y", id="years"),
    ],
)
def test_an_age_is_shown_as_kubectl_shows_it(seconds, text):
    assert human_duration(seconds) == text


@given(st.floats(0, 100 * 365 * DAY))
def test_an_age_is_short(seconds):
    assert len(human_duration(seconds)) <= len("179m30s")


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        pytest.param(CREATED, "2m", id="whole seconds"),
        pytest.param("2023-11-14T22:13:19.500000Z", "0s", id="microseconds"),
        pytest.param(None, "<unknown>", id="missing"),
        pytest.param("yesterday", "<invalid>", id="not a time"),
    ],
)
def test_an_age_is_counted_from_the_simulated_time(stamp, text):
    assert age(stamp, NOW) == text


@pytest.mark.parametrize(
    ("status", "word", "ready"),
    [
        pytest.param({"phase": "Pending"}, "Pending", "0/1", id="pending"),
        pytest.param(
            {"phase": "Pending", "containerStatuses": [container(waits("ContainerCreating"))]},
            "ContainerCreating",
            "0/1",
            id="creating",
        ),
        pytest.param({"phase": "Pending", "conditions": GATED}, "SchedulingGated", "0/1", id="gated"),
        pytest.param(
            {"phase": "Running", "conditions": READY, "containerStatuses": [container(RUNNING, ready=True)]},
            "Running",
            "1/1",
            id="running",
        ),
        pytest.param(
            {"phase": "Succeeded", "containerStatuses": [container(DONE)]}, "Completed", "0/1", id="completed"
        ),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [container(ended(2, "Error"))]}, "Error", "0/1", id="error"
        ),
        pytest.param({"phase": "Failed", "containerStatuses": [container(ended(2))]}, "ExitCode:2", "0/1", id="code"),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [container(ended(2, "", 9))]}, "Signal:9", "0/1", id="signal"
        ),
        pytest.param({"phase": "Failed", "reason": "Evicted"}, "Evicted", "0/1", id="evicted"),
        pytest.param({"phase": "Failed", "reason": "OutOfcpu"}, "OutOfcpu", "0/1", id="refused by the kubelet"),
        pytest.param(
            {"phase": "Running", "containerStatuses": [container(waits("CrashLoopBackOff"))]},
            "CrashLoopBackOff",
            "0/1",
            id="crash loop",
        ),
        pytest.param(
            {"phase": "Running", "containerStatuses": [container(RUNNING, ready=True), container(DONE)]},
            "NotReady",
            "1/1",
            id="one of two completed",
        ),
        pytest.param(
            {"phase": "Running", "containerStatuses": [container(DONE), container(ended(3, "Error"))]},
            "Error",
            "0/1",
            id="one of two failed",
        ),
    ],
)
def test_the_status_word_of_a_pod(status, word, ready):
    found = cells("Pod", {"spec": {"containers": [{"name": "c"}]}, "status": status})

    assert found[1:3] == [ready, word]


@pytest.mark.parametrize(
    ("statuses", "word"),
    [
        pytest.param([container(DONE), container(RUNNING)], "Init:1/2", id="second one runs"),
        pytest.param([container(ended(1, "Error"))], "Init:Error", id="failed"),
        pytest.param([container(ended(1))], "Init:ExitCode:1", id="failed without a reason"),
        pytest.param([container(waits("ImagePullBackOff"))], "Init:ImagePullBackOff", id="waits for its image"),
        pytest.param([container(waits("PodInitializing"))], "Init:0/2", id="waits for its turn"),
    ],
)
def test_the_status_word_of_a_pod_that_initializes(statuses, word):
    spec = {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}, {"name": "j"}]}
    status = {"phase": "Pending", "initContainerStatuses": statuses}

    assert cells("Pod", {"spec": spec, "status": status})[2] == word


def test_a_sidecar_counts_as_a_container():
    spec = {"containers": [{"name": "c"}], "initContainers": [{"name": "s", "restartPolicy": "Always"}]}
    status = {
        "phase": "Running",
        "conditions": READY,
        "initContainerStatuses": [container(RUNNING, ready=True, restarts=2, name="s", started=True)],
        "containerStatuses": [container(RUNNING, ready=True, restarts=1)],
    }

    assert cells("Pod", {"spec": spec, "status": status})[1:4] == ["2/2", "Running", "3"]


@pytest.mark.parametrize(
    ("status", "word"),
    [
        pytest.param({"phase": "Running"}, "Terminating", id="running"),
        pytest.param({"phase": "Succeeded"}, "Succeeded", id="ended before"),
        pytest.param({"phase": "Running", "reason": "NodeLost"}, "Unknown", id="node lost"),
    ],
)
def test_a_deleted_pod_is_terminating_until_it_has_ended(status, word):
    found = {"metadata": {"deletionTimestamp": CREATED}, "spec": {}, "status": status}

    assert cells("Pod", found)[2] == word


def test_restarts_name_the_age_of_the_last_one():
    status = {"phase": "Running", "containerStatuses": [container(RUNNING, restarts=3, lastState=ended(1))]}

    assert cells("Pod", {"spec": {}, "status": status})[3] == "3 (2m ago)"


def test_the_wide_columns_of_a_pod():
    spec = {"nodeName": "n1", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]}
    status = {"podIPs": [{"ip": "10.0.0.9"}], "conditions": [{"type": "a", "status": "True"}]}

    assert cells("Pod", {"spec": spec, "status": status})[5:] == ["10.0.0.9", "n1", "<none>", "1/2"]
    assert cells("Pod", {})[5:] == ["<none>"] * 4


def test_a_table_has_columns_and_rows_with_metadata():
    found = table("Pod", {"status": {"phase": "Pending"}})

    assert (found["kind"], found["apiVersion"], found["metadata"]) == (
        "Table",
        "meta.k8s.io/v1",
        {"resourceVersion": "7"},
    )
    assert headers(found) == [
        *("Name", "Ready", "Status", "Restarts", "Age", "IP*", "Node*", "Nominated Node*", "Readiness Gates*")
    ]
    assert found["columnDefinitions"][0]["format"] == "name"
    assert found["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_a_row_carries_what_the_client_asks_for():
    assert "object" not in table("Pod", {}, include="None")["rows"][0]
    assert table("Pod", {"spec": {"nodeName": "n"}}, include="Object")["rows"][0]["object"]["spec"] == {"nodeName": "n"}


def test_a_node_shows_its_state_roles_and_system():
    found = {
        "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"}},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": READY,
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "kernelVersion": "6.1", "architecture": "amd64"},
        },
    }

    assert cells("Node", found) == [
        *("x", "Ready,SchedulingDisabled", "edge,worker", "2m", "v1.36.3"),
        *("10.0.0.1", "<none>", "<unknown>", "6.1 (amd64)", "<unknown>"),
    ]


@pytest.mark.parametrize(
    ("conditions", "word"),
    [
        pytest.param([], "Unknown", id="no report"),
        pytest.param([{"type": "Ready", "status": "False"}], "NotReady", id="not ready"),
        pytest.param([{"type": "Ready", "status": "Unknown"}], "NotReady", id="lost"),
    ],
)
def test_a_node_without_the_condition_ready_is_not_ready(conditions, word):
    assert cells("Node", {"status": {"conditions": conditions}})[1:3] == [word, "<none>"]


TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:2"}]}}
SELECTOR = {"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [{"key": "k", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("api_version", "kind", "found", "expected"),
    [
        pytest.param(
            "apps/v1",
            "Deployment",
            {
                "spec": {"replicas": 3, "template": TEMPLATE, "selector": SELECTOR},
                "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1},
            },
            ["x", "2/3", 3, 1, "2m", "a,b", "x:1,y:2", "a=1,b=2,k"],
            id="deployment",
        ),
        pytest.param(
            "apps/v1",
            "ReplicaSet",
            {"spec": {"template": TEMPLATE}, "status": {"replicas": 1, "readyReplicas": 0}},
            ["x", 1, 1, 0, "2m", "a,b", "x:1,y:2", "<none>"],
            id="replica set",
        ),
        pytest.param(
            "apps/v1",
            "StatefulSet",
            {"spec": {"replicas": 0, "template": TEMPLATE}},
            ["x", "0/0", "2m", "a,b", "x:1,y:2"],
            id="stateful set",
        ),
        pytest.param(
            "apps/v1",
            "DaemonSet",
            {"spec": {}, "status": {"desiredNumberScheduled": 4, "numberReady": 3}},
            ["x", 4, 0, 3, 0, 0, "<none>", "2m", "", "", "<none>"],
            id="daemon set",
        ),
        pytest.param(
            "v1",
            "ReplicationController",
            {"spec": {"selector": {"a": "1"}}},
            ["x", 1, 0, 0, "2m", "", "", "a=1"],
            id="replication controller",
        ),
        pytest.param(
            "batch/v1",
            "Job",
            {"spec": {"completions": 5}, "status": {"succeeded": 2, "startTime": CREATED}},
            ["x", "Running", "2/5", "2m", "2m", "", "", "<none>"],
            id="job",
        ),
        pytest.param(
            "batch/v1",
            "Job",
            {"spec": {"parallelism": 3}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}},
            ["x", "Complete", "0/1 of 3", "", "2m", "", "", "<none>"],
            id="completed job",
        ),
        pytest.param(
            "batch/v1",
            "CronJob",
            {"spec": {"schedule": "* * * * *"}},
            ["x", "* * * * *", "<none>", "False", 0, "<none>", "2m", "", "", "<none>"],
            id="cron job",
        ),
        pytest.param("v1", "Namespace", {"status": {"phase": "Active"}}, ["x", "Active", "2m"], id="namespace"),
        pytest.param("v1", "ConfigMap", {"data": {"a": "1"}, "binaryData": {"b": ""}}, ["x", 2, "2m"], id="config map"),
        pytest.param("v1", "Secret", {"type": "Opaque", "data": {"a": ""}}, ["x", "Opaque", 1, "2m"], id="secret"),
        pytest.param("v1", "ServiceAccount", {}, ["x", "2m"], id="anything else"),
        pytest.param(
            "coordination.k8s.io/v1", "Lease", {"spec": {"holderIdentity": "me"}}, ["x", "me", "2m"], id="lease"
        ),
        pytest.param(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            {"value": 7, "preemptionPolicy": "Never"},
            ["x", 7, False, "2m", "Never"],
            id="priority class",
        ),
        pytest.param(
            "policy/v1",
            "PodDisruptionBudget",
            {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}},
            ["x", "50%", "N/A", 2, "2m"],
            id="disruption budget",
        ),
        pytest.param(
            "v1",
            "Service",
            {"spec": {"clusterIP": "None", "ports": [{"port": 80}, {"port": 53, "nodePort": 9, "protocol": "UDP"}]}},
            ["x", "ClusterIP", "None", "<none>", "80/TCP,53:9/UDP", "2m", "<none>"],
            id="service",
        ),
        pytest.param(
            "v1",
            "Service",
            {"spec": {"type": "LoadBalancer", "selector": {"a": "1"}}},
            ["x", "LoadBalancer", "<none>", "<pending>", "<none>", "2m", "a=1"],
            id="load balancer",
        ),
    ],
)
def test_the_cells_of_a_resource(api_version, kind, found, expected):
    found = table(kind, dict(found), api_version)

    assert found["rows"][0]["cells"] == expected
    assert len(found["columnDefinitions"]) == len(expected)


@pytest.mark.parametrize(
    ("api_version", "found"),
    [
        pytest.param(
            "v1",
            {
                "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
                "message": " M ",
                "source": {"component": "s", "host": "h"},
                "firstTimestamp": CREATED,
                "lastTimestamp": CREATED,
                "count": 3,
            },
            id="core",
        ),
        pytest.param(
            "events.k8s.io/v1",
            {
                "regarding": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
                "note": "M",
                "reportingController": "s",
                "reportingInstance": "h",
                "eventTime": CREATED,
                "series": {"count": 3, "lastObservedTime": CREATED},
            },
            id="events.k8s.io",
        ),
    ],
)
def test_both_kinds_of_events_have_the_same_cells(api_version, found):
    expected = ["2m", "Normal", "R", "pod/p", "spec", "s, h", "M", "2m", 3, "x"]

    assert cells("Event", {"type": "Normal", "reason": "R", **found}, api_version) == expected


def test_a_custom_resource_has_the_columns_of_its_definition():
    found = table(
        "PodGroup", {"spec": {"minMember": 3}, "status": {"phase": "Running"}}, "scheduling.volcano.sh/v1beta1"
    )

    assert headers(found) == ["Name", "STATUS", "minMember", "RUNNINGS", "AGE", "QUEUE*"]
    assert found["rows"][0]["cells"] == ["x", "Running", 3, None, "2m", None]


def test_a_custom_resource_without_columns_has_a_name_and_an_age():
    assert headers(table("Queue", {}, "scheduling.sigs.dev/v1alpha2")) == ["Name", "Age"]


def test_a_printer_column_may_filter_a_list():
    status = {"observedAt": CREATED, "conditions": [{"type": "Ready", "reason": "Complete"}]}

    assert cells("NodeLayers", {"status": status}, "lamina.dev/v1alpha1")[5:] == ["2m", "2m", None, "Complete"]


@pytest.mark.parametrize(
    ("path", "values"),
    [
        pytest.param(".a.b", [1], id="fields"),
        pytest.param("{.a.b}", [1], id="braces"),
        pytest.param("a.b", [1], id="without a dot"),
        pytest.param(".list[0].n", ["x"], id="index"),
        pytest.param(".list[-1].n", ["y"], id="index from the end"),
        pytest.param(".list[9].n", [], id="index out of range"),
        pytest.param(".list[*].n", ["x", "y"], id="all"),
        pytest.param('.list[?(@.n=="y")].v', [2], id="equal"),
        pytest.param('.list[?(@.n!="y")].v', [1], id="not equal"),
        pytest.param(r".labels.example\.com/a", ["b"], id="escaped dot"),
        pytest.param(".labels['example.com/a']", ["b"], id="quoted"),
        pytest.param(".none.b", [], id="missing"),
        pytest.param(".a.b.c", [], id="below a number"),
        pytest.param(".a[0]", [], id="index into an object"),
        pytest.param(".a[?(@.b > 1)]", [], id="not understood"),
        pytest.param("." + "a" * 2000, [], id="too long"),
    ],
)
def test_a_path_finds_values(path, values):
    found = {
        "a": {"b": 1},
        "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}],
        "labels": {"example.com/a": "b"},
    }

    assert find_values(found, path) == values


@given(st.text(max_size=40))
def test_no_path_raises(path):
    assert isinstance(find_values({"a": [1]}, path), list)


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param(None, "<none>", id="none"),
        pytest.param({}, "<none>", id="empty"),
        pytest.param(
            {"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["b", "a"]}]},
            "k notin (a,b)",
            id="not in",
        ),
        pytest.param({"matchExpressions": [{"key": "k", "operator": "DoesNotExist"}]}, "!k", id="does not exist"),
    ],
)
def test_a_selector_is_shown_as_text(selector, text):
    assert label_selector_text(selector) == text
