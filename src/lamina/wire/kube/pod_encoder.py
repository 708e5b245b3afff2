"""
Encoder of pods: the v1 Pod, as a JSON object, that `codec.decode_pod` decodes to the same pod.

The result has the fields that an API server would show. What is lost or changed on the way back:

- Times are cut to whole seconds and shifted by *epoch*. An unknown time (0) becomes the time of the step before it:
  created, bound, started, ready, ended.
- A controller without an API version gets that of its kind. A deadline is rounded up to whole seconds.
- Containers without a name get one. Host ports move to the first container.
- ``unmet`` and ``ignored`` are words, from which no field can be made. Decoding derives ``unmet`` from ``repels``.
- ``failed`` or ``ended_at`` without ``finished``, and ``finished`` without ``started``, are no states of a v1 Pod.
- Totals that neither the containers nor overhead nor pod-level resources give (`pod_containers_encoder`).

Equal parts of pods share one object, so callers must not change a result in place. Only the outer object, ``metadata``,
``spec`` and ``status`` are new in every call.
"""

import math
from typing import Any, Final

from lamina.model.node_features import BIND_MOUNT_OPTIONS, HOST_NETWORK_USERS, RESTART_ALL_CONTAINERS
from lamina.model.pod import Owner, Pod
from lamina.wire.kube.encoded_values import encode_timestamp
from lamina.wire.kube.pod_containers_encoder import (
    EncodedObject,
    encode_containers,
    encode_other_resources,
    with_host_ports,
)
from lamina.wire.kube.pod_placement_encoder import encode_placement
from lamina.wire.kube.pod_requirements import RESTART_ALL
from lamina.wire.kube.pod_status_encoder import NO_DETAILS, PodDetails, encode_pod_status

OWNER_VERSIONS: Final = {  # of controllers that have none
    "ReplicaSet": "apps/v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}
# Owners whose pods end; a finished pod of theirs is not restarted.
_FINITE_OWNERS: Final = frozenset({"Job", "CronJob"})
# Defaults of the API server that every pod has.
_SPEC_DEFAULTS: Final[EncodedObject] = {
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "securityContext": {},
}


def encode_pod(pod: Pod, epoch: float = 0.0, details: PodDetails = NO_DETAILS) -> dict[str, Any]:
    """
    Return *pod* as a v1 Pod; *epoch* is the Unix time of the model's time 0.

    Raises ValueError for a time that no date can express.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": encode_pod_metadata(pod, epoch, details),
        "spec": encode_pod_spec(pod, details),
        "status": encode_pod_status(pod, epoch, details),
    }


def encode_pod_metadata(pod: Pod, epoch: float = 0.0, details: PodDetails = NO_DETAILS) -> dict[str, Any]:
    """Return ``metadata`` of a v1 Pod, without a resource version."""
    written: EncodedObject = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "creationTimestamp": encode_timestamp(epoch + pod.created_at),
    }
    if pod.labels:
        written["labels"] = pod.labels
    if pod.annotations:
        written["annotations"] = pod.annotations
    if pod.owner is not None:
        written["ownerReferences"] = [_owner(pod.owner)]
    if pod.deleting:
        grace = int(details.grace if details.deletion_grace is None else details.deletion_grace)
        since = pod.deleting_since or pod.created_at
        written["deletionTimestamp"] = encode_timestamp(epoch + since + grace)
        written["deletionGracePeriodSeconds"] = grace
    return written


def _owner(owner: Owner) -> EncodedObject:
    return {
        "apiVersion": owner.api_version or OWNER_VERSIONS.get(owner.kind, "v1"),
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def encode_pod_spec(pod: Pod, details: PodDetails = NO_DETAILS) -> dict[str, Any]:
    """Return ``spec`` of a v1 Pod."""
    encoded = encode_containers(pod.containers, pod.init_containers)
    written: EncodedObject = {
        "containers": with_host_ports(encoded.containers, pod.host_ports) if pod.host_ports else encoded.containers,
        "schedulerName": pod.scheduler_name,
        "priority": pod.priority,
        "preemptionPolicy": "PreemptLowerPriority" if pod.preempts else "Never",
        "restartPolicy": details.restart_policy or _restart_policy(pod.owner),
        "terminationGracePeriodSeconds": int(details.grace),
        **_SPEC_DEFAULTS,
    }
    if encoded.init_containers:
        written["initContainers"] = encoded.init_containers
    if pod.required_features:
        written |= _requiring(pod.required_features, written["containers"])
    if pod.node_name:
        written["nodeName"] = pod.node_name
    if (
        pod.requests != encoded.requests
        or pod.scoring_requests != encoded.scoring_requests
        or (pod.limits and pod.limits != encoded.limits)
    ):
        written |= encode_other_resources(pod, encoded)
    if pod.deadline is not None:
        written["activeDeadlineSeconds"] = math.ceil(pod.deadline)
    written |= encode_placement(pod)
    return written


def _requiring(features: tuple[str, ...], containers: list[EncodedObject]) -> EncodedObject:
    """Return fields of a spec that requires these features."""
    written: EncodedObject = {}
    if HOST_NETWORK_USERS in features:
        written |= {"hostNetwork": True, "hostUsers": False}
    first: EncodedObject = {}
    if RESTART_ALL_CONTAINERS in features:
        rule = {"action": RESTART_ALL, "exitCodes": {"operator": "In", "values": [1]}}
        first |= {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    if BIND_MOUNT_OPTIONS in features:
        first["volumeMounts"] = [{"name": "data", "mountPath": "/data", "bindMountOptions": ["noexec"]}]
    if first and containers:
        written["containers"] = [{**containers[0], **first}, *containers[1:]]
    return written


def _restart_policy(owner: Owner | None) -> str:
    return "Never" if owner is not None and owner.kind in _FINITE_OWNERS else "Always"
