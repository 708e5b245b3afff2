"""
Admission of new pods: defaults, priority, tolerations and the first status.

Expected objects and messages are those of a real server of 1.36 for the same requests.
"""

import pytest

from lamina.simulator.facade.pod_defaults import pull_policy
from lamina.simulator.facade.pod_qos import qos_class
from tests.unit.simulator.facade.admission_objects import CLASSES, admit, context, pod, refusal

NOT_READY = {
    "key": "node.kubernetes.io/not-ready",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 300,
}
UNREACHABLE = {**NOT_READY, "key": "node.kubernetes.io/unreachable"}


def test_a_plain_pod_gets_the_defaults_of_the_real_server():
    assert admit(pod()) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "generation": 1},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "x",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "Always",
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [NOT_READY, UNREACHABLE],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {"phase": "Pending", "qosClass": "BestEffort"},
    }


def test_values_that_a_client_sets_are_kept():
    spec = {"schedulerName": "lamina", "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "nodeName": "n1"}

    found = admit(pod({**spec, "serviceAccountName": "me"}))["spec"]

    assert {name: found[name] for name in spec} == spec
    assert found["serviceAccount"] == "me"


def test_null_means_missing():
    found = admit(pod({"nodeSelector": None, "schedulerName": None, "restartPolicy": ""}))["spec"]

    assert "nodeSelector" not in found
    assert (found["schedulerName"], found["restartPolicy"]) == ("default-scheduler", "Always")


def test_requests_default_to_limits_and_quantities_are_canonical():
    resources = {"limits": {"cpu": 0.5, "memory": "1024Mi", "example.com/gpu": 1}, "requests": {"cpu": "250m"}}

    assert admit(pod(resources=resources))["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "500m", "memory": "1Gi", "example.com/gpu": "1"},
        "requests": {"cpu": "250m", "memory": "1Gi", "example.com/gpu": "1"},
    }


def test_requests_of_the_pod_itself_default_to_those_of_its_containers_and_then_to_its_limits():
    containers = [{"name": n, "image": "x", "resources": {"requests": {"cpu": "600m"}}} for n in ("a", "b")]
    init = [{"name": "i", "image": "x", "resources": {"requests": {"cpu": "1"}}}]
    spec = {"containers": containers, "initContainers": init, "resources": {"limits": {"cpu": 2, "memory": "2Gi"}}}

    found = admit(pod(spec))

    # cpu: max(600m + 600m, 1); memory: the limit
    assert found["spec"]["resources"]["requests"] == {"cpu": "1200m", "memory": "2Gi"}
    assert found["status"]["qosClass"] == "Burstable"


def test_ports_probes_and_field_references_get_defaults():
    found = admit(
        pod(
            {"hostNetwork": True},
            ports=[{"containerPort": 80}],
            env=[{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            livenessProbe={"httpGet": {"port": 80}},
            startupProbe={"grpc": {"port": 90}, "timeoutSeconds": 5},
        )
    )["spec"]["containers"][0]

    assert found["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    assert found["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert found["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert (found["startupProbe"]["timeoutSeconds"], found["startupProbe"]["grpc"]["service"]) == (5, "")


@pytest.mark.parametrize(
    ("volume", "stored"),
    [
        pytest.param({}, {"emptyDir": {}}, id="no source"),
        pytest.param({"configMap": {"name": "m"}}, {"configMap": {"name": "m", "defaultMode": 420}}, id="config map"),
        pytest.param({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}, id="host path"),
        pytest.param(
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                    "defaultMode": 420,
                }
            },
            id="projected",
        ),
        pytest.param(
            {"ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1024Mi"}}}}}},
            {
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "metadata": {},
                        "spec": {"resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
                    }
                }
            },
            id="ephemeral",
        ),
    ],
)
def test_volumes_get_defaults(volume, stored):
    found = admit(pod({"volumes": [{"name": "v", **volume}]}))

    assert found["spec"]["volumes"] == [{"name": "v", **stored}]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        pytest.param("nginx", "Always", id="no tag"),
        pytest.param("nginx:latest", "Always", id="latest"),
        pytest.param("nginx:1.2", "IfNotPresent", id="tag"),
        pytest.param("registry.example:5000/nginx", "Always", id="port and no tag"),
        pytest.param("registry.example:5000/nginx:1", "IfNotPresent", id="port and tag"),
        pytest.param("nginx@sha256:" + "0" * 64, "IfNotPresent", id="digest"),
    ],
)
def test_the_default_pull_policy_depends_on_the_tag(image, policy):
    assert pull_policy(image) == policy


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param([{}], "BestEffort", id="nothing"),
        pytest.param([{"requests": {"cpu": "0"}}], "BestEffort", id="zero"),
        pytest.param(
            [{"requests": {"example.com/gpu": 1}, "limits": {"example.com/gpu": 1}}], "BestEffort", id="device"
        ),
        pytest.param([{"requests": {"cpu": "1"}}], "Burstable", id="only a request"),
        pytest.param(
            [{"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1024Mi"}}],
            "Guaranteed",
            id="equal",
        ),
        pytest.param([{"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}], "Burstable", id="no memory"),
        pytest.param(
            [{"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}],
            "Burstable",
            id="limit above the request",
        ),
        pytest.param(
            [{"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}, {}],
            "Burstable",
            id="one of two containers",
        ),
    ],
)
def test_the_quality_of_service_class_depends_on_requests_and_limits(resources, expected):
    assert qos_class({"containers": [{"resources": each} for each in resources]}) == expected
    assert qos_class({"initContainers": [{"resources": each} for each in resources]}) == expected


@pytest.mark.parametrize(
    ("tolerations", "added"),
    [
        pytest.param([], [NOT_READY, UNREACHABLE], id="none"),
        pytest.param([{"key": NOT_READY["key"], "operator": "Exists"}], [UNREACHABLE], id="one of them, any effect"),
        pytest.param([{"operator": "Exists"}], [], id="everything"),
        pytest.param(
            [{"key": NOT_READY["key"], "operator": "Exists", "effect": "NoSchedule"}],
            [NOT_READY, UNREACHABLE],
            id="another effect",
        ),
    ],
)
def test_a_pod_tolerates_a_lost_node_for_five_minutes_unless_it_has_its_own_rule(tolerations, added):
    assert admit(pod({"tolerations": tolerations}))["spec"]["tolerations"] == [*tolerations, *added]


@pytest.mark.parametrize(
    ("spec", "default", "expected"),
    [
        pytest.param({}, None, (None, 0, "PreemptLowerPriority"), id="no class"),
        pytest.param({"priorityClassName": "high"}, None, ("high", 1000, "PreemptLowerPriority"), id="class"),
        pytest.param({"priorityClassName": "never"}, None, ("never", 500, "Never"), id="class that does not preempt"),
        pytest.param({}, CLASSES["never"], ("never", 500, "Never"), id="default class"),
        pytest.param(
            {"priorityClassName": "system-node-critical"},
            None,
            ("system-node-critical", 2_000_001_000, "PreemptLowerPriority"),
            id="class that every cluster has",
        ),
    ],
)
def test_priority_comes_from_the_priority_class(spec, default, expected):
    found = admit(pod(spec), context(default))["spec"]

    assert (found.get("priorityClassName"), found["priority"], found["preemptionPolicy"]) == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"priorityClassName": "nope"},
            'pods "p" is forbidden: no PriorityClass with name nope was found',
            id="unknown class",
        ),
        pytest.param(
            {"priority": 5},
            'pods "p" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority '
            "admission controller computed 0 from the given PriorityClass name",
            id="priority without a class",
        ),
        pytest.param(
            {"preemptionPolicy": "Never"},
            'pods "p" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; '
            "priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
            id="policy without a class",
        ),
    ],
)
def test_a_priority_that_the_server_would_not_compute_is_forbidden(spec, message):
    error = refusal(pod(spec))

    assert (error.code, error.message) == (403, message)


def test_a_gated_pod_has_a_condition():
    assert admit(pod({"schedulingGates": [{"name": "g"}]}))["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": "2023-11-14T22:13:20Z",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]
