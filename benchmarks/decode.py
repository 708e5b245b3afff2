"""
Cost of decoding a list of pods, as the API server sends it, into the model.

10,000 pods of about 4.7 KB, with the managed fields, environment, volumes and conditions of real ones, are one list.
The cyclic garbage collector stays on, as by default. Runs are interleaved, and the best of each counts, because noise
only slows a run down.
"""

import gc
import json
import random
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from lamina.wire.kube.codec import ListObject, decode_pod_list
from lamina.wire.kube.pod_object import PodObject

NAME: Final = "decode"
SUMMARY: Final = "Microseconds of CPU to read one pod of a list of 10,000: partial structs, the model, and json"

PODS: Final = 10_000
ROUNDS: Final = 3
SEED: Final = 7
APPS: Final = 200
NODES: Final = 1_000

PARTIAL: Final = msgspec.json.Decoder(ListObject[PodObject])


def pod_list() -> bytes:
    """Return the encoded list."""
    luck = random.Random(SEED)
    apps = [an_app(luck, number) for number in range(APPS)]
    items = [a_pod(luck, luck.choice(apps), number) for number in range(PODS)]
    page = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "48211907"}, "items": items}
    return json.dumps(page, separators=(",", ":")).encode()


def an_app(luck: random.Random, number: int) -> dict[str, Any]:
    """Draw the values that the pods of one deployment share."""
    name = f"{luck.choice(['checkout', 'search', 'billing', 'catalog', 'session', 'render'])}-{number}"
    return {
        "name": name,
        "namespace": f"team-{number % 25}",
        "image": f"registry.example.com/shop/{name}:2026.{luck.randrange(1, 12)}.{luck.randrange(40)}",
        "hash": f"{luck.getrandbits(40):010x}",
        "requests": {"cpu": f"{luck.choice([50, 100, 250, 500, 1000])}m", "memory": f"{luck.choice([64, 256, 512])}Mi"},
        "limits": {"memory": f"{luck.choice([512, 1024])}Mi"},
        "uid": an_id(luck),
    }


def an_id(luck: random.Random) -> str:
    """Draw a fake uid."""
    digits = f"{luck.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def a_pod(luck: random.Random, app: dict[str, Any], number: int) -> dict[str, Any]:
    """Return one running pod of *app*."""
    suffix = f"{luck.getrandbits(25):05x}"
    made = (
        f"2026-03-{luck.randrange(1, 29):02}T{luck.randrange(24):02}:{luck.randrange(60):02}:{luck.randrange(60):02}Z"
    )
    labels = {
        "app.kubernetes.io/name": app["name"],
        "app.kubernetes.io/part-of": "shop",
        "app.kubernetes.io/managed-by": "Helm",
        "pod-template-hash": app["hash"],
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app['name']}-{app['hash']}", "uid": app["uid"]}
    return {
        "metadata": {
            "name": f"{app['name']}-{app['hash']}-{suffix}",
            "generateName": f"{app['name']}-{app['hash']}-",
            "namespace": app["namespace"],
            "uid": an_id(luck),
            "resourceVersion": str(40_000_000 + number),
            "creationTimestamp": made,
            "labels": labels,
            "annotations": {"prometheus.io/scrape": "true", "checksum/config": f"{luck.getrandbits(256):064x}"},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            "managedFields": managed_fields(labels, made),
        },
        "spec": spec(app, suffix, f"node-{luck.randrange(NODES):04}"),
        "status": status(luck, app, made),
    }


def managed_fields(labels: dict[str, str], made: str) -> list[dict[str, Any]]:
    """Return the managed fields: a third of a real pod."""
    nothing: dict[str, Any] = {}
    container = {
        f"f:{name}": nothing for name in ("image", "imagePullPolicy", "name", "resources", "terminationMessagePath")
    }
    conditions = {
        f'k:{{"type":"{name}"}}': {
            ".": nothing,
            "f:lastProbeTime": nothing,
            "f:lastTransitionTime": nothing,
            "f:status": nothing,
        }
        for name in ("ContainersReady", "Initialized", "Ready")
    }
    return [
        {
            "manager": "kube-controller-manager",
            "operation": "Update",
            "apiVersion": "v1",
            "time": made,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {
                    "f:generateName": nothing,
                    "f:labels": {".": nothing, **{f"f:{label}": nothing for label in labels}},
                    "f:ownerReferences": {".": nothing},
                },
                "f:spec": {"f:containers": {'k:{"name":"app"}': container}, "f:restartPolicy": nothing},
            },
        },
        {
            "manager": "kubelet",
            "operation": "Update",
            "apiVersion": "v1",
            "time": made,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {"f:conditions": conditions, "f:hostIP": nothing, "f:phase": nothing}},
            "subresource": "status",
        },
    ]


def spec(app: dict[str, Any], suffix: str, node: str) -> dict[str, Any]:
    """Return the pod's spec."""
    token = f"kube-api-access-{suffix}"
    container = {
        "name": "app",
        "image": app["image"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "DATABASE_URL", "valueFrom": {"secretKeyRef": {"name": f"{app['name']}-database", "key": "url"}}},
            {"name": "JAVA_TOOL_OPTIONS", "value": "-XX:MaxRAMPercentage=70 -XX:+ExitOnOutOfMemoryError"},
        ],
        "resources": {"limits": app["limits"], "requests": app["requests"]},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/app"},
            {"name": token, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "timeoutSeconds": 1},
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True},
    }
    proxy = {
        "name": "proxy",
        "image": "registry.example.com/mesh/proxy:1.29.2",
        "resources": {"requests": {"cpu": "10m", "memory": "40Mi"}},
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "volumes": [
            {"name": "config", "configMap": {"name": f"{app['name']}-config", "defaultMode": 420}},
            {
                "name": token,
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    ],
                    "defaultMode": 420,
                },
            },
        ],
        "containers": [container, proxy],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "serviceAccountName": app["name"],
        "serviceAccount": app["name"],
        "nodeName": node,
        "securityContext": {"fsGroup": 1000},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in ("not-ready", "unreachable")
        ],
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def status(luck: random.Random, app: dict[str, Any], made: str) -> dict[str, Any]:
    """Return the pod's status."""
    address = f"10.{luck.randrange(256)}.{luck.randrange(256)}.{luck.randrange(256)}"
    return {
        "phase": "Running",
        "conditions": [
            {"type": name, "status": "True", "lastProbeTime": None, "lastTransitionTime": made}
            for name in ("Initialized", "Ready", "PodScheduled")
        ],
        "hostIP": "192.0.2.17",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": made,
        "containerStatuses": [
            {
                "name": "app",
                "state": {"running": {"startedAt": made}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": app["image"],
                "imageID": f"{app['image'].partition(':')[0]}@sha256:{luck.getrandbits(256):064x}",
                "containerID": f"containerd://{luck.getrandbits(256):064x}",
                "started": True,
            }
        ],
        "qosClass": "Burstable",
    }


def cpu_us_per_pod(read: Callable[[bytes], object], data: bytes) -> float:
    """Return the CPU µs per pod of decoding the list once; the result is freed after the clock has stopped."""
    gc.collect()
    start = time.process_time()
    kept = read(data)
    spent = time.process_time() - start
    del kept
    return spent / PODS * 1e6


def main() -> dict[str, object]:
    """Run the three readers in turn, print a table, return the best of each."""
    data = pod_list()
    readers: dict[str, Callable[[bytes], object]] = {
        "us_per_pod_partial": PARTIAL.decode,
        "us_per_pod_model": decode_pod_list,
        "us_per_pod_json": json.loads,
    }
    best: dict[str, float] = dict.fromkeys(readers, float("inf"))
    for _ in range(ROUNDS):
        for name, read in readers.items():
            best[name] = min(best[name], cpu_us_per_pod(read, data))
    print(f"{PODS:,} pods of {len(data) // PODS:,} bytes, microseconds of CPU each")
    for name, spent in best.items():
        print(f"  {name:<20}{spent:>8.1f}")
    return {
        "pods": PODS,
        "bytes_per_pod": len(data) // PODS,
        **{name: round(spent, 2) for name, spent in best.items()},
    }


if __name__ == "__main__":
    print(json.dumps(main()))
