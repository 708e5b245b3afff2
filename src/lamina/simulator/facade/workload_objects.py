"""
Workloads that clients create: the controller of a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job, and its status.

A controller has one name in the run. It is the object's name and a part of its uid, so that objects of the same name in
other namespaces, of other kinds, or created again are other controllers. A StatefulSet keeps its name, because its pods
are named after it.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec

from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.controllers.deployment import HASH_LABEL
from lamina.simulator.facade.api_state import SUFFIX_LETTERS
from lamina.simulator.facade.kube_object import KubeObject, part, text, uid_of
from lamina.simulator.facade.pod_disruption import is_healthy
from lamina.simulator.workloads.imports.manifest_objects import ManifestObject
from lamina.simulator.workloads.imports.manifests import ManifestControllers

ENDED: Final = frozenset({"Succeeded", "Failed"})
DAEMON_FIELDS: Final = ("currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberReady")


def controller_name(found: KubeObject) -> str:
    """Return the name of an object's controller in the run."""
    name = text(part(found, "metadata"), "name")
    return name if found.get("kind") == "StatefulSet" else f"{name}-{uid_of(found)[:5]}"


def controller_spec(found: KubeObject) -> ControllerSpec:
    """Return the controller of an object. Raises InputError or WireError if it cannot be read."""
    controllers = ManifestControllers()
    controllers.take(
        ManifestObject("request", 1, text(found, "kind"), msgspec.json.encode({**found, "metadata": _own(found)}))
    )
    spec = next(iter(controllers.pods())).spec
    version = template_version(found) if found.get("kind") == "Deployment" else ""
    return msgspec.structs.replace(spec, name=controller_name(found), version=version)


def template_version(found: KubeObject) -> str:
    """Return ten letters for the pod template of a workload; equal templates have the same."""
    template = msgspec.json.encode(part(part(found, "spec"), "template"), order="sorted")
    return "".join(SUFFIX_LETTERS[byte % len(SUFFIX_LETTERS)] for byte in hashlib.sha256(template).digest()[:10])


def is_active(pod: KubeObject) -> bool:
    """Return whether a pod has neither ended nor is being deleted."""
    ended = part(pod, "status").get("phase") in ENDED
    return not ended and not part(pod, "metadata").get("deletionTimestamp")


def _own(found: KubeObject) -> KubeObject:
    """Return the metadata without owners: the object itself is what is simulated."""
    return {name: value for name, value in part(found, "metadata").items() if name != "ownerReferences"}


def workload_status(found: KubeObject, pods: Iterable[KubeObject], now: str) -> KubeObject:
    """Return the status of a workload with these pods."""
    kind = found.get("kind")
    listed = [pod for pod in pods if is_active(pod)] if kind in {"Deployment", "ReplicaSet"} else list(pods)
    phases = [part(pod, "status").get("phase") for pod in listed]
    alive = sum(phase not in ENDED for phase in phases)
    ready = sum(map(is_healthy, listed))
    old = part(found, "status")
    generation = part(found, "metadata").get("generation", 1)
    if kind == "Job":
        return _job_status(found, old, phases, ready, now)
    if kind == "DaemonSet":
        figures = dict.fromkeys(DAEMON_FIELDS[:2], alive) | dict.fromkeys(DAEMON_FIELDS[2:], ready)
        return {
            **old,
            **figures,
            "numberMisscheduled": 0,
            "updatedNumberScheduled": alive,
            "numberUnavailable": alive - ready,
            "observedGeneration": generation,
        }
    status = {
        **old,
        "observedGeneration": generation,
        "replicas": alive,
        "readyReplicas": ready,
        "availableReplicas": ready,
    }
    if kind == "Deployment":
        wanted = part(found, "spec").get("replicas", 1)
        version = template_version(found)
        new = [pod for pod in listed if part(part(pod, "metadata"), "labels").get(HASH_LABEL) == version]
        done = sum(map(is_healthy, new)) >= wanted
        status |= {"updatedReplicas": len(new), "unavailableReplicas": max(0, wanted - ready)}
        available = "True" if ready >= wanted else "False"
        reason = "MinimumReplicasAvailable" if ready >= wanted else "MinimumReplicasUnavailable"
        status["conditions"] = [
            _condition("Available", available, reason, old, now),
            _condition("Progressing", "True", "NewReplicaSetAvailable" if done else "ReplicaSetUpdated", old, now),
        ]
    elif kind == "StatefulSet":
        status |= {"currentReplicas": alive, "updatedReplicas": alive, "collisionCount": 0}
    else:
        status |= {"fullyLabeledReplicas": alive}
    return status


def _job_status(found: KubeObject, old: KubeObject, phases: list[object], ready: int, now: str) -> KubeObject:
    spec = part(found, "spec")
    succeeded, failed = phases.count("Succeeded"), phases.count("Failed")
    status: KubeObject = {
        **old,
        "startTime": old.get("startTime") or now,
        "active": len(phases) - succeeded - failed,
        "ready": ready,
        "succeeded": max(succeeded, old.get("succeeded", 0)),
        "failed": max(failed, old.get("failed", 0)),
    }
    wanted = spec.get("completions", spec.get("parallelism", 1))
    if status["succeeded"] >= wanted:
        status["completionTime"] = old.get("completionTime") or now
        status["conditions"] = [_condition("Complete", "True", "CompletionsReached", old, now)]
    elif status["failed"] > spec.get("backoffLimit", 6):
        status["conditions"] = [_condition("Failed", "True", "BackoffLimitExceeded", old, now)]
    return status


def _condition(type_: str, value: str, reason: str, old: KubeObject, now: str) -> KubeObject:
    since = now
    for one in old.get("conditions") or ():
        if isinstance(one, dict) and one.get("type") == type_ and one.get("status") == value:
            since = one.get("lastTransitionTime", now)
    return {
        "type": type_,
        "status": value,
        "reason": reason,
        "message": "",
        "lastTransitionTime": since,
        "lastUpdateTime": since,
    }
