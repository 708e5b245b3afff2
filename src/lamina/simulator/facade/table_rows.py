"""Rows of built-in resources in ``kubectl get``: one function for each resource, its cells in the order of the columns."""

from typing import Any, Final

from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.object_fields import mappings, number, texts
from lamina.simulator.facade.table_values import (
    NONE,
    UNKNOWN,
    age,
    condition_status,
    container_cells,
    human_duration,
    label_selector_text,
    labels_text,
    object_age,
    timestamp_seconds,
)

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE_LABEL: Final = "kubernetes.io/role"
_JOB_ENDINGS: Final = (("Complete", "Complete"), ("Failed", "Failed"))
_JOB_PAUSES: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _name(found: KubeObject) -> str:
    return text(part(found, "metadata"), "name")


def _replicas(found: KubeObject) -> int:
    """Return the wanted number of replicas; the API's default is 1."""
    spec = part(found, "spec")
    return number(spec, "replicas") if "replicas" in spec else 1


def node_cells(node: KubeObject, now: float) -> list[Any]:
    """Return Name, Status, Roles, Age, Version, addresses, operating system, kernel and runtime."""
    status = part(node, "status")
    info = part(status, "nodeInfo")
    ready = condition_status(status, "Ready")
    words = ["Unknown" if not ready else "Ready" if ready == "True" else "NotReady"]
    if part(node, "spec").get("unschedulable") is True:
        words.append("SchedulingDisabled")
    labels = part(part(node, "metadata"), "labels")
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(text(labels, _ROLE_LABEL))
    addresses = {text(each, "type"): text(each, "address") for each in reversed(mappings(status, "addresses"))}
    architecture = text(info, "architecture")
    return [
        _name(node),
        ",".join(words),
        ",".join(sorted(roles - {""})) or NONE,
        object_age(node, now),
        text(info, "kubeletVersion"),
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        text(info, "osImage") or UNKNOWN,
        (text(info, "kernelVersion") or UNKNOWN) + (f" ({architecture})" if architecture else ""),
        text(info, "containerRuntimeVersion") or UNKNOWN,
    ]


def namespace_cells(namespace: KubeObject, now: float) -> list[Any]:
    """Return Name, Status, Age."""
    return [_name(namespace), text(part(namespace, "status"), "phase"), object_age(namespace, now)]


def config_map_cells(config_map: KubeObject, now: float) -> list[Any]:
    """Return Name, Data, Age."""
    entries = len(part(config_map, "data")) + len(part(config_map, "binaryData"))
    return [_name(config_map), entries, object_age(config_map, now)]


def secret_cells(secret: KubeObject, now: float) -> list[Any]:
    """Return Name, Type, Data, Age."""
    return [_name(secret), text(secret, "type"), len(part(secret, "data")), object_age(secret, now)]


def service_cells(service: KubeObject, now: float) -> list[Any]:
    """Return Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector."""
    spec = part(service, "spec")
    ports = [
        f"{number(each, 'port')}{f':{node_port}' if (node_port := number(each, 'nodePort')) else ''}/"
        f"{text(each, 'protocol') or 'TCP'}"
        for each in mappings(spec, "ports")
    ]
    return [
        _name(service),
        text(spec, "type") or "ClusterIP",
        text(spec, "clusterIP") or NONE,
        _external_address(service),
        ",".join(ports) or NONE,
        object_age(service, now),
        labels_text(part(spec, "selector")),
    ]


def _external_address(service: KubeObject) -> str:
    spec = part(service, "spec")
    kind = text(spec, "type") or "ClusterIP"
    if kind == "ExternalName":
        return text(spec, "externalName")
    addresses: list[str] = []
    if kind == "LoadBalancer":
        ingress = mappings(part(part(service, "status"), "loadBalancer"), "ingress")
        addresses = sorted({text(each, "ip") or text(each, "hostname") for each in ingress} - {""})
    addresses += texts(spec, "externalIPs")
    return ",".join(addresses) or ("<pending>" if kind == "LoadBalancer" else NONE)


def event_cells(event: KubeObject, now: float) -> list[Any]:
    """Return the cells of an event of the core group or of events.k8s.io, which name their fields differently."""
    first = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    last = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or first
    count = number(event, "count") or number(event, "deprecatedCount") or 1
    series = event.get("series")
    if isinstance(series, dict):
        last, count = series.get("lastObservedTime"), number(series, "count")
    target = part(event, "involvedObject") or part(event, "regarding")
    kind, name = text(target, "kind").lower(), text(target, "name")
    source = part(event, "source") or part(event, "deprecatedSource")
    component = text(source, "component") or text(event, "reportingComponent") or text(event, "reportingController")
    instance = text(source, "host") or text(event, "reportingInstance")
    return [
        age(last, now),
        text(event, "type"),
        text(event, "reason"),
        f"{kind}/{name}" if name else kind,
        text(target, "fieldPath"),
        f"{component}, {instance}" if instance else component,
        (text(event, "message") or text(event, "note")).strip(),
        age(first, now),
        count,
        _name(event),
    ]


def deployment_cells(deployment: KubeObject, now: float) -> list[Any]:
    """Return Name, Ready, Up-to-date, Available, Age, Containers, Images, Selector."""
    status = part(deployment, "status")
    return [
        _name(deployment),
        f"{number(status, 'readyReplicas')}/{_replicas(deployment)}",
        number(status, "updatedReplicas"),
        number(status, "availableReplicas"),
        object_age(deployment, now),
        *container_cells(deployment),
        label_selector_text(part(deployment, "spec").get("selector")),
    ]


def replica_set_cells(replica_set: KubeObject, now: float) -> list[Any]:
    """Return Name, Desired, Current, Ready, Age, Containers, Images, Selector; also of a replication controller."""
    spec, status = part(replica_set, "spec"), part(replica_set, "status")
    controller = replica_set.get("kind") == "ReplicationController"
    selector = labels_text(part(spec, "selector")) if controller else label_selector_text(spec.get("selector"))
    return [
        _name(replica_set),
        _replicas(replica_set),
        number(status, "replicas"),
        number(status, "readyReplicas"),
        object_age(replica_set, now),
        *container_cells(replica_set),
        selector,
    ]


def stateful_set_cells(stateful_set: KubeObject, now: float) -> list[Any]:
    """Return Name, Ready, Age, Containers, Images."""
    ready = number(part(stateful_set, "status"), "readyReplicas")
    return [
        _name(stateful_set),
        f"{ready}/{_replicas(stateful_set)}",
        object_age(stateful_set, now),
        *container_cells(stateful_set),
    ]


def daemon_set_cells(daemon_set: KubeObject, now: float) -> list[Any]:
    """Return Name, the counts of pods, Node Selector, Age, Containers, Images, Selector."""
    spec, status = part(daemon_set, "spec"), part(daemon_set, "status")
    counts = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        _name(daemon_set),
        *(number(status, count) for count in counts),
        labels_text(part(part(part(spec, "template"), "spec"), "nodeSelector")),
        object_age(daemon_set, now),
        *container_cells(daemon_set),
        label_selector_text(spec.get("selector")),
    ]


def job_cells(job: KubeObject, now: float) -> list[Any]:
    """Return Name, Status, Completions, Duration, Age, Containers, Images, Selector."""
    spec, status = part(job, "spec"), part(job, "status")
    succeeded, parallelism = number(status, "succeeded"), number(spec, "parallelism")
    if spec.get("completions") is not None:
        completions = f"{succeeded}/{number(spec, 'completions')}"
    else:
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    started = timestamp_seconds(status.get("startTime"))
    ended = timestamp_seconds(status.get("completionTime"))
    duration = "" if started is None else human_duration((now if ended is None else ended) - started)
    return [
        _name(job),
        _job_word(job),
        completions,
        duration,
        object_age(job, now),
        *container_cells(job),
        label_selector_text(spec.get("selector")),
    ]


def _job_word(job: KubeObject) -> str:
    status = part(job, "status")
    for kind, word in _JOB_ENDINGS:
        if condition_status(status, kind) == "True":
            return word
    if part(job, "metadata").get("deletionTimestamp"):
        return "Terminating"
    return next((kind for kind in _JOB_PAUSES if condition_status(status, kind) == "True"), "Running")


def cron_job_cells(cron_job: KubeObject, now: float) -> list[Any]:
    """Return Name, Schedule, Timezone, Suspend, Active, Last Schedule, Age, Containers, Images, Selector."""
    spec, status = part(cron_job, "spec"), part(cron_job, "status")
    job = part(spec, "jobTemplate")
    last = status.get("lastScheduleTime")
    return [
        _name(cron_job),
        text(spec, "schedule"),
        text(spec, "timeZone") or NONE,
        str(spec.get("suspend") is True),
        len(mappings(status, "active")),
        age(last, now) if last else NONE,
        object_age(cron_job, now),
        *container_cells(job),
        label_selector_text(part(job, "spec").get("selector")),
    ]


def pod_disruption_budget_cells(budget: KubeObject, now: float) -> list[Any]:
    """Return Name, Min Available, Max Unavailable, Allowed Disruptions, Age."""
    spec = part(budget, "spec")
    limits = (spec.get(name) for name in ("minAvailable", "maxUnavailable"))
    return [
        _name(budget),
        *("N/A" if limit is None else str(limit) for limit in limits),
        number(part(budget, "status"), "disruptionsAllowed"),
        object_age(budget, now),
    ]


def priority_class_cells(priority_class: KubeObject, now: float) -> list[Any]:
    """Return Name, Value, Global-Default, Age, PreemptionPolicy."""
    return [
        _name(priority_class),
        number(priority_class, "value"),
        priority_class.get("globalDefault") is True,
        object_age(priority_class, now),
        text(priority_class, "preemptionPolicy"),
    ]


def lease_cells(lease: KubeObject, now: float) -> list[Any]:
    """Return Name, Holder, Age."""
    return [_name(lease), text(part(lease, "spec"), "holderIdentity"), object_age(lease, now)]
