"""
Objects of cases as a client sends them to an API server, which validates what the façade stores as it is.

The additions do not matter to kube-scheduler: limits of resources that cannot be overcommitted, templates, the placeholder
of a container's image.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from tests.parity.case_clusters import HUGE
from tests.parity.case_files import ParityCase
from tests.parity.case_objects import KubeJson
from tests.parity.recording.case_stage import KINDS

BY_SERVER: Final = frozenset({"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"})
"""Metadata that only the API server writes."""
NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
LABEL: Final = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?")
"""Values that a label may have."""
TEMPLATE: Final = {"containers": [{"name": "c0", "image": "app:1"}]}


def path_of(resource: str, found: KubeJson) -> str:
    """Return the path of the collection of an object."""
    _, version, _ = KINDS[resource]
    root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    namespace = found["metadata"].get("namespace", "")
    return f"{root}/namespaces/{namespace}/{resource}" if namespace else f"{root}/{resource}"


def sendable(resource: str, found: KubeJson) -> KubeJson:
    """Return an object that the API server accepts, if it can be stored at all."""
    metadata = {key: value for key, value in found["metadata"].items() if key not in BY_SERVER}
    sent = {**found, "metadata": metadata}
    if resource == "pods":
        kinds = ("initContainers", "containers")
        containers = {kind: list(map(_container, sent["spec"][kind])) for kind in kinds if kind in sent["spec"]}
        sent["spec"] = {**sent["spec"], **containers}
    if resource == "replicationcontrollers":
        labels = sent["spec"]["selector"]
        sent["spec"] = {**sent["spec"], "template": {"metadata": {"labels": labels}, "spec": TEMPLATE}}
    return sent


def _container(found: KubeJson) -> KubeJson:
    """Return a container with limits for what cannot be overcommitted, as the API server requires them."""
    requests = found.get("resources", {}).get("requests", {})
    fixed = {name: amount for name, amount in requests.items() if name not in NATIVE}
    limits = {**fixed, **found["resources"].get("limits", {})} if fixed else {}
    return {**found, "resources": {**found["resources"], "limits": limits}} if limits else found


def with_uids(found: Any, uids: Mapping[str, str]) -> Any:
    """Return an object whose fields `uid` are replaced by those of the API server."""
    if isinstance(found, dict):
        return {
            key: uids.get(value, value) if key == "uid" and isinstance(value, str) else with_uids(value, uids)
            for key, value in found.items()
        }
    return [with_uids(one, uids) for one in found] if isinstance(found, list) else found


# -- what cannot be stored -----------------------------------------------------------------------------------------------


def refused(case: ParityCase) -> str:
    """Return why an API server cannot store an object of this case; empty if it can."""
    volumes = case.objects.get("persistentvolumes", ())
    if not all(LABEL.fullmatch(value) for one in volumes for value in one["metadata"].get("labels", {}).values()):
        return "a label of a volume has an invalid value"
    return next((why for pod in (case.pod, *case.placed) if (why := _refused_pod(pod))), "")


def _refused_pod(pod: KubeJson) -> str:
    spec, labels = pod["spec"], pod["metadata"].get("labels", {})
    for one in spec.get("topologySpreadConstraints", ()):
        # The API server adds the pod's label to the selector, and then finds the key twice.
        if labels.keys() & set(one.get("matchLabelKeys", ())) & _keys(one.get("labelSelector") or {}):
            return "matchLabelKeys repeats a key of labelSelector"
    for containers in (spec["containers"], spec.get("initContainers", [])):
        ports = [port for one in containers for port in one.get("ports", ()) if "hostPort" in port]
        taken = Counter((port["hostPort"], port.get("hostIP", ""), port["protocol"]) for port in ports)
        if taken and max(taken.values()) > 1:
            return "two containers of a pod use the same port of the host"
        if any(_only_huge_pages(one.get("resources", {}).get("requests", {})) for one in containers):
            return "a container requests huge pages without processors and memory"
    return ""


def _keys(selector: KubeJson) -> set[str]:
    return {*selector.get("matchLabels", {}), *(one["key"] for one in selector.get("matchExpressions", ()))}


def _only_huge_pages(requests: KubeJson) -> bool:
    return HUGE in requests and not {"cpu", "memory"} & requests.keys()
