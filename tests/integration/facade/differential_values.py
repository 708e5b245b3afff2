"""Values that random pods, nodes and deployments have, and changes of them; some are refused."""

from typing import Any, Final

POD_FIELD_VALUES: Final[tuple[tuple[str, float, tuple[Any, ...]], ...]] = (
    ("nodeName", 0.15, ("n1", "n2")),
    ("schedulerName", 0.2, ("other", "default-scheduler")),
    ("restartPolicy", 0.2, ("Never", "OnFailure", "Perhaps")),
    ("terminationGracePeriodSeconds", 0.2, (1, 5, 45)),
    ("priorityClassName", 0.12, ("system-node-critical", "missing-class")),
    ("priority", 0.04, (3,)),
    ("nodeSelector", 0.1, ({"disk": "ssd"},)),
    (
        "tolerations",
        0.15,
        (
            [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            [{"operator": "Exists"}],
            [{"operator": "Equal"}],
        ),
    ),
    ("schedulingGates", 0.08, ([{"name": "example.com/gate"}],)),
    ("hostNetwork", 0.06, (True,)),
    ("activeDeadlineSeconds", 0.05, (60, 0)),
    (
        "affinity",
        0.08,
        (
            {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "In", "values": ["a"]}]}]
                    }
                }
            },
            {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
                    ]
                }
            },
        ),
    ),
    (
        "topologySpreadConstraints",
        0.08,
        (
            [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}],
            [{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        ),
    ),
    (
        "initContainers",
        0.08,
        ([{"name": "init", "image": "registry.example/init:1", "resources": {"requests": {"cpu": "2"}}}],),
    ),
)
POD_CHANGES: Final[tuple[Any, ...]] = (
    {"spec": {"nodeName": "n2"}},
    {"spec": {"schedulerName": "another"}},
    {"spec": {"activeDeadlineSeconds": 30}},
    {"spec": {"terminationGracePeriodSeconds": 1}},
    {"spec": {"schedulingGates": None}},
    {"spec": {"nodeSelector": {"disk": "hdd"}}},
    {"spec": {"containers": [{"name": "main", "image": "registry.example/app:2"}]}},
    {"spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]}},
    {"spec": {"tolerations": [{"key": "new", "operator": "Exists"}]}},
    {"spec": {"restartPolicy": "Always"}},
    {"status": {"phase": "Running"}},
    {"spec": {}},
)
NODE_CHANGES: Final[tuple[Any, ...]] = (
    {"spec": {"unschedulable": True}},
    {"spec": {"unschedulable": False}},
    {"spec": {"unschedulable": None}},
    {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
    {"spec": {"taints": None}},
    {"spec": {"providerID": "x://2"}},
    {"status": {"capacity": {"cpu": "9"}}},
)
DEPLOYMENT_CHANGES: Final[tuple[Any, ...]] = (
    {"spec": {"replicas": 2}},
    {"spec": {"replicas": None}},
    {"spec": {"replicas": -3}},
    {"spec": {"paused": True}},
    {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
    {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "example/app:2"}]}}}},
    {"spec": {"selector": {"matchLabels": {"app": "changed"}}}},
    {"status": {"replicas": 5}},
)
NEVER: Final = "2026-01-01T00:00:00Z"
POD_STATUSES: Final[tuple[Any, ...]] = (
    {"phase": "Running"},
    {"phase": "Succeeded"},
    {"phase": "Failed", "reason": "OutOfcpu", "message": "no room"},
    {"nominatedNodeName": "n1"},
    {
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/1",
                "lastProbeTime": None,
                "lastTransitionTime": NEVER,
            }
        ]
    },
    {
        "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": NEVER}],
        "phase": "Running",
    },
    {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}], "hostIP": "10.1.1.1", "startTime": NEVER},
    {},
)
NODE_STATUSES: Final[tuple[Any, ...]] = (
    {"capacity": {"cpu": "8", "memory": "16Gi"}, "allocatable": {"cpu": "7900m"}},
    {"conditions": [{"type": "Ready", "status": "Unknown", "lastHeartbeatTime": NEVER, "lastTransitionTime": NEVER}]},
    {"images": [{"names": ["registry.example/app:1"], "sizeBytes": 100}]},
    {"allocatable": {"cpu": "much"}},
    {},
)
