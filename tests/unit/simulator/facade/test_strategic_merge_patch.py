"""
Strategic merge patch: a table of patches with the API server's results.

The expected results of the table were computed once with the strategic merge of Kubernetes 1.36 for the same inputs.
"""

import pytest

from lamina.simulator.facade.patches.json_values import copy_json
from lamina.simulator.facade.patches.strategic_merge import apply_strategic_merge

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"app": "web", "tier": "a"}, "finalizers": ["f1", "f2", "f3"]},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "web:1",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 443}],
                "args": ["x", "y"],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            },
            {"name": "sidecar", "image": "sidecar:1"},
        ],
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "conf", "secret": {"secretName": "s"}}],
        "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
        "nodeSelector": {"zone": "z1", "disk": "ssd"},
        "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1}],
    },
    "status": {
        "phase": "Pending",
        "conditions": [
            {"type": "Initialized", "status": "True"},
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "old"},
        ],
        "podIPs": [{"ip": "10.0.0.1"}],
    },
}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]},
    "status": {
        "conditions": [{"type": "Ready", "status": "False"}],
        "addresses": [{"type": "InternalIP", "address": "1"}, {"type": "Hostname", "address": "n"}],
        "images": [{"names": ["a"]}],
        "capacity": {"cpu": "4", "memory": "8Gi"},
    },
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}, {"name": "log", "image": "log:1"}]},
        },
    },
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s"},
    "spec": {
        "selector": {"app": "web"},
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}, {"port": 443, "protocol": "TCP"}],
    },
}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "b"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}
ACCOUNT = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "a"},
    "secrets": [{"name": "s1"}],
    "imagePullSecrets": [{"name": "i1"}],
}


def merged(document, patch):
    return apply_strategic_merge(document, patch, document["apiVersion"], document["kind"])


def value_at(document, path):
    for name in path.split("."):
        document = document[name]
    return document


@pytest.mark.parametrize(
    ("document", "patch", "path", "expected"),
    [
        pytest.param(
            POD,
            {
                "status": {
                    "conditions": [
                        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "new"}
                    ],
                    "nominatedNodeName": "n1",
                }
            },
            "status",
            {
                "conditions": [
                    {"status": "True", "type": "Initialized"},
                    {"message": "new", "reason": "Unschedulable", "status": "False", "type": "PodScheduled"},
                ],
                "nominatedNodeName": "n1",
                "phase": "Pending",
                "podIPs": [{"ip": "10.0.0.1"}],
            },
            id="scheduler's condition",
        ),
        pytest.param(
            POD,
            {
                "status": {
                    "$setElementOrder/conditions": [
                        {"type": "DisruptionTarget"},
                        {"type": "Initialized"},
                        {"type": "PodScheduled"},
                    ],
                    "conditions": [{"type": "DisruptionTarget", "status": "True"}],
                }
            },
            "status",
            {
                "conditions": [
                    {"status": "True", "type": "DisruptionTarget"},
                    {"status": "True", "type": "Initialized"},
                    {"message": "old", "reason": "Unschedulable", "status": "False", "type": "PodScheduled"},
                ],
                "phase": "Pending",
                "podIPs": [{"ip": "10.0.0.1"}],
            },
            id="new condition with an order",
        ),
        pytest.param(
            POD,
            {"spec": {"containers": [{"name": "web", "image": "web:2"}]}},
            "spec.containers",
            [
                {
                    "args": ["x", "y"],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                    "image": "web:2",
                    "name": "web",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 443}],
                    "volumeMounts": [{"mountPath": "/data", "name": "data"}],
                },
                {"image": "sidecar:1", "name": "sidecar"},
            ],
            id="container image",
        ),
        pytest.param(
            POD,
            {"spec": {"containers": [{"name": "new", "image": "new:1"}, {"name": "sidecar", "image": "sidecar:2"}]}},
            "spec.containers",
            [
                {"image": "new:1", "name": "new"},
                {
                    "args": ["x", "y"],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                    "image": "web:1",
                    "name": "web",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 443}],
                    "volumeMounts": [{"mountPath": "/data", "name": "data"}],
                },
                {"image": "sidecar:2", "name": "sidecar"},
            ],
            id="new container comes first",
        ),
        pytest.param(
            POD,
            {
                "spec": {
                    "containers": [
                        {
                            "name": "web",
                            "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}],
                            "ports": [{"containerPort": 80, "name": "http"}],
                            "args": ["z"],
                        }
                    ]
                }
            },
            "spec.containers",
            [
                {
                    "args": ["z"],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}, {"name": "C", "value": "4"}],
                    "image": "web:1",
                    "name": "web",
                    "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}, {"containerPort": 443}],
                    "volumeMounts": [{"mountPath": "/data", "name": "data"}],
                },
                {"image": "sidecar:1", "name": "sidecar"},
            ],
            id="env and ports of a container",
        ),
        pytest.param(
            POD,
            {"spec": {"containers": [{"name": "sidecar", "$patch": "delete"}]}},
            "spec.containers",
            [
                {
                    "args": ["x", "y"],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                    "image": "web:1",
                    "name": "web",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 443}],
                    "volumeMounts": [{"mountPath": "/data", "name": "data"}],
                }
            ],
            id="delete a container",
        ),
        pytest.param(
            POD,
            {"spec": {"containers": [{"name": "only", "image": "o:1"}, {"$patch": "replace"}]}},
            "spec.containers",
            [{"image": "o:1", "name": "only"}],
            id="replace the containers",
        ),
        pytest.param(
            POD,
            {
                "spec": {
                    "containers": [
                        {"name": "web", "image": "web:2", "env": [{"$patch": "replace"}, {"name": "Z", "value": "0"}]}
                    ]
                }
            },
            "spec.containers",
            [
                {
                    "args": ["x", "y"],
                    "env": [{"name": "Z", "value": "0"}],
                    "image": "web:2",
                    "name": "web",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 443}],
                    "volumeMounts": [{"mountPath": "/data", "name": "data"}],
                },
                {"image": "sidecar:1", "name": "sidecar"},
            ],
            id="replace a container",
        ),
        pytest.param(
            POD,
            {
                "spec": {
                    "$setElementOrder/containers": [{"name": "sidecar"}, {"name": "web"}],
                    "containers": [{"name": "web", "image": "web:2"}],
                }
            },
            "spec",
            {
                "containers": [
                    {"image": "sidecar:1", "name": "sidecar"},
                    {
                        "args": ["x", "y"],
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                        "image": "web:2",
                        "name": "web",
                        "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 443}],
                        "volumeMounts": [{"mountPath": "/data", "name": "data"}],
                    },
                ],
                "nodeSelector": {"disk": "ssd", "zone": "z1"},
                "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
                "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}],
                "volumes": [{"emptyDir": {}, "name": "data"}, {"name": "conf", "secret": {"secretName": "s"}}],
            },
            id="order of containers",
        ),
        pytest.param(
            POD,
            {"spec": {"volumes": [{"name": "conf", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]}},
            "spec.volumes",
            [{"emptyDir": {}, "name": "data"}, {"configMap": {"name": "c"}, "name": "conf"}],
            id="retain keys of a volume",
        ),
        pytest.param(
            POD,
            {"spec": {"tolerations": [{"key": "c", "operator": "Exists"}]}},
            "spec.tolerations",
            [{"key": "c", "operator": "Exists"}],
            id="tolerations are replaced",
        ),
        pytest.param(
            POD,
            {"spec": {"nodeSelector": {"disk": None, "gpu": "yes"}}},
            "spec.nodeSelector",
            {"gpu": "yes", "zone": "z1"},
            id="node selector is merged",
        ),
        pytest.param(
            POD,
            {"metadata": {"finalizers": ["f9", "f2"]}},
            "metadata.finalizers",
            ["f9", "f1", "f2", "f3"],
            id="finalizers are merged",
        ),
        pytest.param(
            POD,
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["f1", "f3"]}},
            "metadata",
            {"finalizers": ["f2"], "labels": {"app": "web", "tier": "a"}, "name": "p"},
            id="finalizers are deleted",
        ),
        pytest.param(
            POD,
            {
                "metadata": {
                    "$setElementOrder/finalizers": ["f3", "f9", "f1"],
                    "$deleteFromPrimitiveList/finalizers": ["f2"],
                    "finalizers": ["f9"],
                }
            },
            "metadata",
            {"finalizers": ["f3", "f9", "f1"], "labels": {"app": "web", "tier": "a"}, "name": "p"},
            id="finalizers in an order",
        ),
        pytest.param(
            POD,
            {
                "spec": {
                    "topologySpreadConstraints": [
                        {"topologyKey": "zone", "maxSkew": 2},
                        {"topologyKey": "host", "maxSkew": 1},
                    ]
                }
            },
            "spec.topologySpreadConstraints",
            [{"maxSkew": 2, "topologyKey": "zone"}, {"maxSkew": 1, "topologyKey": "host"}],
            id="spread constraints by topology key",
        ),
        pytest.param(
            POD,
            {"status": {"podIPs": [{"ip": "10.0.0.2"}]}},
            "status.podIPs",
            [{"ip": "10.0.0.2"}, {"ip": "10.0.0.1"}],
            id="pod addresses",
        ),
        pytest.param(
            POD, {"spec": {"nodeSelector": {"$patch": "delete"}}}, "spec.nodeSelector", {}, id="delete a mapping"
        ),
        pytest.param(
            POD,
            {"metadata": {"labels": {"$patch": "replace", "only": "this"}}},
            "metadata.labels",
            {"only": "this"},
            id="replace a mapping",
        ),
        pytest.param(
            POD,
            {"spec": {"volumes": [{"name": "n", "emptyDir": {"medium": None}}]}},
            "spec.volumes",
            [
                {"emptyDir": {}, "name": "n"},
                {"emptyDir": {}, "name": "data"},
                {"name": "conf", "secret": {"secretName": "s"}},
            ],
            id="nulls of a new element vanish",
        ),
        pytest.param(
            NODE,
            {"spec": {"taints": [{"key": "c", "effect": "NoSchedule"}]}},
            "spec.taints",
            [{"effect": "NoSchedule", "key": "c"}],
            id="node taints are replaced",
        ),
        pytest.param(
            NODE,
            {
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}],
                    "addresses": [{"type": "Hostname", "address": "m"}],
                    "images": [{"names": ["b"]}],
                    "capacity": {"cpu": "8"},
                }
            },
            "status",
            {
                "addresses": [{"address": "1", "type": "InternalIP"}, {"address": "m", "type": "Hostname"}],
                "capacity": {"cpu": "8", "memory": "8Gi"},
                "conditions": [{"status": "True", "type": "Ready"}, {"status": "False", "type": "DiskPressure"}],
                "images": [{"names": ["b"]}],
            },
            id="node status",
        ),
        pytest.param(
            DEPLOYMENT,
            {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
            "spec.strategy",
            {"type": "Recreate"},
            id="strategy with retained keys",
        ),
        pytest.param(
            DEPLOYMENT,
            {
                "spec": {
                    "replicas": 5,
                    "template": {
                        "spec": {
                            "$setElementOrder/containers": [{"name": "web"}, {"name": "extra"}],
                            "containers": [
                                {"name": "web", "image": "web:2"},
                                {"name": "extra", "image": "e:1"},
                                {"name": "log", "$patch": "delete"},
                            ],
                        }
                    },
                }
            },
            "spec",
            {
                "replicas": 5,
                "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"rollingUpdate": {"maxSurge": 1}, "type": "RollingUpdate"},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"image": "web:2", "name": "web"}, {"image": "e:1", "name": "extra"}]},
                },
            },
            id="pod template",
        ),
        pytest.param(
            SERVICE,
            {"spec": {"ports": [{"port": 443, "targetPort": 8443}, {"port": 53, "protocol": "UDP"}]}},
            "spec.ports",
            [
                {"port": 80, "protocol": "TCP", "targetPort": 8080},
                {"port": 443, "protocol": "TCP", "targetPort": 8443},
                {"port": 53, "protocol": "UDP"},
            ],
            id="service ports by port",
        ),
        pytest.param(
            BUDGET,
            {"spec": {"selector": {"matchLabels": {"tier": "a"}}}},
            "spec.selector.matchLabels.tier",
            "a",
            id="selector of a disruption budget is replaced",
        ),
        pytest.param(
            ACCOUNT,
            {"secrets": [{"name": "s2"}]},
            "secrets",
            [{"name": "s2"}, {"name": "s1"}],
            id="secrets of a service account",
        ),
    ],
)
def test_a_patch_is_merged_as_in_the_api_server(document, patch, path, expected):
    before = copy_json([document, patch])

    result = merged(document, patch)

    assert value_at(result, path) == expected
    assert [document, patch] == before
