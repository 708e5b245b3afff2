"""
Workloads that clients create: the controller of a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job, and its status.

A controller has one name in the run. It is the object's name and a part of its uid, so that objects of the same name in
other namespaces, of other kinds, or created again are other controllers. A StatefulSet keeps its name, because its pods
are named after it.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.facade.kube_object import KubeObject, part, text, uid_of
from lamina.simulator.facade.pod_disruption import is_healthy
from lamina.simulator.workloads.imports.manifest_objects import ManifestObject
from lamina.simulator.workloads.imports.manifests import ManifestControllers

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
    return msgspec.structs.replace(spec, name=controller_name(found))


def _own(found: KubeObject) -> KubeObject:
    """Return the metadata without owners: the object itself is what is simulated."""
    return {name: value for name, value in part(found, "metadata").items() if name != "ownerReferences"}


def workload_status(found: KubeObject, pods: Iterable[KubeObject], now: str) -> KubeObject:
    """Return the status of a workload with these pods."""
    listed = list(pods)
    phases = [part(pod, "status").get("phase") for pod in listed]
    alive = sum(phase not in {"Succeeded", "Failed"} for phase in phases)
    ready = sum(map(is_healthy, listed))
    old = part(found, "status")
    generation = part(found, "metadata").get("generation", 1)
    kind = found.get("kind")
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
        status |= {"updatedReplicas": alive, "unavailableReplicas": max(0, wanted - ready)}
        available = "True" if ready >= wanted else "False"
        reason = "MinimumReplicasAvailable" if ready >= wanted else "MinimumReplicasUnavailable"
        status["conditions"] = [
            _condition("Available", available, reason, old, now),
            _condition(
                "Progressing", "True", "NewReplicaSetAvailable" if ready >= wanted else "ReplicaSetUpdated", old, now
            ),
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
