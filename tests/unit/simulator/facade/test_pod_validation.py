"""Validation of new pods: what is refused, in the words of a real server of 1.36 for the same requests."""

import pytest

from tests.unit.simulator.facade.admission_objects import SUBDOMAIN, pod, refusal


@pytest.mark.parametrize(
    ("found", "words"),
    [
        pytest.param(pod({"containers": []}), "spec.containers: Required value", id="no containers"),
        pytest.param(pod({"containers": [{"name": "c"}]}), "spec.containers[0].image: Required value", id="no image"),
        pytest.param(
            pod(image=" x"), 'Invalid value: " x": must not have leading or trailing', id="image with a space"
        ),
        pytest.param(pod({"containers": [{"image": "x"}]}), "spec.containers[0].name: Required value", id="no name"),
        pytest.param(
            pod({"containers": [{"name": "c", "image": "x"}, {"name": "c", "image": "y"}]}),
            'spec.containers[1].name: Duplicate value: "c"',
            id="same container name",
        ),
        pytest.param(pod(metadata={"name": "A_b"}), f'metadata.name: Invalid value: "A_b": {SUBDOMAIN}', id="pod name"),
        pytest.param(pod(metadata={"name": "a" * 254}), "must be no more than 253 characters", id="long name"),
        pytest.param(
            pod({"restartPolicy": "Sometimes"}),
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
            id="restart policy",
        ),
        pytest.param(pod({"dnsPolicy": "X"}), 'spec.dnsPolicy: Unsupported value: "X"', id="DNS policy"),
        pytest.param(
            pod(resources={"requests": {"cpu": "-1"}}),
            'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            id="negative request",
        ),
        pytest.param(
            pod(resources={"requests": {"cpu": 2}, "limits": {"cpu": 1}}),
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
            id="request above the limit",
        ),
        pytest.param(
            pod(resources={"requests": {"example.com/gpu": 1}}),
            "resources.limits: Required value: Limit must be set for non overcommitable resources",
            id="device without a limit",
        ),
        pytest.param(
            pod(resources={"limits": {"example.com/gpu": "500m"}}),
            'limits[example.com/gpu]: Invalid value: "500m": must be an integer',
            id="half a device",
        ),
        pytest.param(
            pod(resources={"requests": {"foo": 1}}),
            'requests[foo]: Invalid value: "foo": must be a standard resource type or fully qualified',
            id="unknown resource",
        ),
        pytest.param(pod(imagePullPolicy="x"), 'imagePullPolicy: Unsupported value: "x"', id="pull policy"),
        pytest.param(pod(ports=[{}]), "ports[0].containerPort: Required value", id="no port"),
        pytest.param(
            pod(ports=[{"containerPort": 70000}]), "70000: must be between 1 and 65535, inclusive", id="large port"
        ),
        pytest.param(
            pod(ports=[{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}]),
            'ports[1].hostPort: Duplicate value: "TCP//5"',
            id="same host port",
        ),
        pytest.param(pod({"activeDeadlineSeconds": 0}), "must be between 1 and 2147483647, inclusive", id="deadline"),
        pytest.param(
            pod({"tolerations": [{"key": "a", "operator": "Q"}]}),
            'spec.tolerations[0].operator: Unsupported value: "Q": supported values: "Equal", "Exists"',
            id="toleration operator",
        ),
        pytest.param(
            pod({"tolerations": [{"operator": "Equal"}]}), "operator must be Exists when `key` is empty", id="no key"
        ),
        pytest.param(
            pod({"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]}),
            "value must be empty when `operator` is 'Exists'",
            id="toleration of any value with a value",
        ),
        pytest.param(
            pod({"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3}]}),
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
            id="toleration seconds",
        ),
        pytest.param(pod(metadata={"labels": {"a b": "c"}}), 'metadata.labels: Invalid value: "a b"', id="label key"),
        pytest.param(pod(metadata={"labels": {"a": "c c"}}), 'metadata.labels: Invalid value: "c c"', id="label value"),
        pytest.param(
            pod(metadata={"annotations": {"a b": ""}}), "metadata.annotations: Invalid value", id="annotation"
        ),
        pytest.param(
            pod(metadata={"annotations": {"a": "x" * 262_144}}), "may not be more than 262144 bytes", id="annotations"
        ),
        pytest.param(
            pod({"nodeSelector": {"a b": "c"}}), 'spec.nodeSelector: Invalid value: "a b"', id="node selector"
        ),
        pytest.param(
            pod({"schedulingGates": [{"name": "g"}], "nodeName": "n"}),
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
            id="gated and bound",
        ),
        pytest.param(
            pod({"schedulingGates": [{"name": "g"}, {"name": "g"}]}),
            'schedulingGates[1]: Duplicate value: "g"',
            id="gates",
        ),
        pytest.param(
            pod({"topologySpreadConstraints": [{"whenUnsatisfiable": "x"}]}),
            "maxSkew: Invalid value: 0: must be greater than zero, spec.topologySpreadConstraints[0].topologyKey: "
            "Required value: can not be empty, spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value",
            id="spreading",
        ),
        pytest.param(
            pod(
                {
                    "affinity": {
                        "podAntiAffinity": {
                            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {}}]
                        }
                    }
                }
            ),
            "[0].podAffinityTerm.topologyKey: Required value: can not be empty",
            id="pod affinity",
        ),
        pytest.param(
            pod(
                {
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "X"}]}]
                            }
                        }
                    }
                }
            ),
            'matchExpressions[0].operator: Invalid value: "X": not a valid selector operator',
            id="node affinity",
        ),
        pytest.param(
            pod({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}}),
            "nodeSelectorTerms: Required value: must have at least one node selector term",
            id="no terms",
        ),
        pytest.param(pod({"nodeName": "A B"}), f'spec.nodeName: Invalid value: "A B": {SUBDOMAIN}', id="node name"),
        pytest.param(
            pod(volumeMounts=[{"name": "v", "mountPath": "/x"}]), 'volumeMounts[0].name: Not found: "v"', id="mount"
        ),
        pytest.param(pod({"overhead": {"cpu": "-1"}}), 'spec.overhead.limits[cpu]: Invalid value: "-1"', id="overhead"),
    ],
)
def test_a_pod_that_the_server_refuses_is_refused_in_its_words(found, words):
    error = refusal(found)

    assert (error.code, error.reason) == (422, "Invalid")
    assert error.message.startswith(f'Pod "{found["metadata"]["name"]}" is invalid: ')
    assert words in error.message


def test_all_problems_of_a_pod_are_reported_together():
    error = refusal(pod({"containers": [{"name": "c"}], "restartPolicy": "x"}))

    assert error.message == (
        'Pod "p" is invalid: [spec.containers[0].image: Required value, spec.restartPolicy: Unsupported value: "x": '
        'supported values: "Always", "OnFailure", "Never"]'
    )
    assert [cause["field"] for cause in error.details["causes"]] == ["spec.containers[0].image", "spec.restartPolicy"]


def test_the_number_of_reported_problems_is_limited():
    error = refusal(pod({"containers": [{"name": f"c{number}"} for number in range(1000)]}))

    assert len(error.details["causes"]) == 64


@pytest.mark.parametrize(
    ("found", "words"),
    [
        pytest.param(
            pod(resources={"requests": {"cpu": "abc"}}), "quantities must match the regular expression", id="quantity"
        ),
        pytest.param(pod({"containers": "x"}), "spec.containers: expected a list, found a string", id="no list"),
        pytest.param(pod({"restartPolicy": 3}), "expected a string, found a whole number", id="no text"),
        pytest.param(pod({"priority": True}), "expected a whole number, found true or false", id="no number"),
        pytest.param(pod({"priority": 1.5}), "expected a whole number, found a number", id="fraction"),
        pytest.param(pod(ports=[None]), "spec.containers[0].ports[0]: expected an object, found null", id="null"),
        pytest.param({**pod(), "spec": []}, "spec.containers: Required value", id="empty list as a spec"),
        pytest.param({**pod(), "spec": "x"}, "spec: expected an object, found a string", id="text as a spec"),
    ],
)
def test_a_field_of_the_wrong_type_names_its_path(found, words):
    error = refusal(found)

    assert error.code in (400, 422)
    assert words in error.message
