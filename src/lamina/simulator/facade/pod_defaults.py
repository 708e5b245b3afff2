"""
Default values of a pod's spec, as the API server fills them in before it stores a pod or a workload's template.

The functions change the spec that they are given, which must be the caller's own copy and of the shape
`object_shapes.POD_SPEC`. A template gets fewer defaults than a pod: the rest follows when its pods are created.
"""

from fractions import Fraction
from typing import Any, Final

from lamina.simulator.facade.canonical_quantities import canonical_quantity, canonical_resource_list, exact_quantity
from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.object_fields import mappings

GRACE_SECONDS: Final = 30
DEFAULT_SCHEDULER: Final = "default-scheduler"
DEFAULT_ACCOUNT: Final = "default"
FILE_MODE: Final = 0o644
"""Permissions of files in volumes made of ConfigMaps and Secrets."""
TOKEN_SECONDS: Final = 3600

_VOLUME_SOURCES_WITH_MODE: Final = ("configMap", "secret", "downwardAPI", "projected")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")


def default_pod_spec(spec: KubeObject, *, template: bool = False) -> None:
    """Fill in the defaults of a spec. Raises QuantityFormError if it has text that is no quantity."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", GRACE_SECONDS)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", DEFAULT_SCHEDULER)
    for name in ("restartPolicy", "dnsPolicy", "schedulerName"):
        if spec[name] == "":
            spec[name] = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst"}.get(name, DEFAULT_SCHEDULER)
    account = text(spec, "serviceAccountName") or text(spec, "serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in (*mappings(spec, "initContainers"), *mappings(spec, "containers")):
        _default_container(container, host_network=spec.get("hostNetwork") is True, template=template)
    for container in mappings(spec, "ephemeralContainers"):
        _default_container(container, host_network=False, template=True)
    for volume in mappings(spec, "volumes"):
        _default_volume(volume)
    if "overhead" in spec:
        spec["overhead"] = canonical_resource_list(spec["overhead"])
    if "resources" in spec:
        _canonical_resources(spec["resources"])
        if not template:
            _default_pod_resources(spec)
    if not template:
        spec.setdefault("enableServiceLinks", True)


def pull_policy(image: str) -> str:
    """Return the default pull policy: Always for the tag ``latest`` and for no tag, without a digest."""
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _default_container(container: KubeObject, *, host_network: bool, template: bool) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(text(container, "image"))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container.setdefault("resources", {})
    _canonical_resources(resources)
    if not template and part(resources, "limits"):
        resources["requests"] = {**part(resources, "limits"), **part(resources, "requests")}
    for port in mappings(container, "ports"):
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if host_network and not port.get("hostPort"):
            port["hostPort"] = port.get("containerPort", 0)
    for variable in mappings(container, "env"):
        _default_field_reference(part(variable, "valueFrom"))
    for name in _PROBES:
        if name in container:
            _default_probe(container[name])
    for hook in part(container, "lifecycle").values():
        _default_http_get(hook)


def _canonical_resources(resources: KubeObject) -> None:
    for name in ("limits", "requests"):
        if name in resources:
            resources[name] = canonical_resource_list(resources[name])


def _default_pod_resources(spec: KubeObject) -> None:
    """Set requests of the pod itself: what its containers request together, or else its limit."""
    resources = spec["resources"]
    for name, limit in part(resources, "limits").items():
        requests = resources.setdefault("requests", {})
        if name not in requests:
            together = _container_requests(spec, name)
            requests[name] = limit if together is None else together


def _container_requests(spec: KubeObject, name: str) -> str | None:
    """Return what the containers request together, with init containers before the others; None if nothing."""
    largest, sidecars = Fraction(0), Fraction(0)
    found = False
    for container in mappings(spec, "initContainers"):
        request = part(part(container, "resources"), "requests").get(name)
        found = found or request is not None
        amount = exact_quantity(request or 0)
        if container.get("restartPolicy") == "Always":
            sidecars += amount
            largest = max(largest, sidecars)
        else:
            largest = max(largest, sidecars + amount)
    total = sidecars
    for container in mappings(spec, "containers"):
        request = part(part(container, "resources"), "requests").get(name)
        found = found or request is not None
        total += exact_quantity(request or 0)
    return _amount_text(max(total, largest), name) if found else None


def _amount_text(amount: Fraction, name: str) -> str:
    if amount.denominator == 1:
        unit = "Ki" if name == "memory" and amount.numerator % 1024 == 0 else ""
        return canonical_quantity(f"{amount.numerator // (1024 if unit else 1)}{unit}")
    return canonical_quantity(f"{int(amount * 10**9)}n")


def _default_field_reference(found: KubeObject) -> None:
    reference = found.get("fieldRef")
    if isinstance(reference, dict):
        reference.setdefault("apiVersion", "v1")


def _default_probe(probe: KubeObject) -> None:
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(name):
            probe[name] = value
    if isinstance(probe.get("grpc"), dict):
        probe["grpc"].setdefault("service", "")
    _default_http_get(probe)


def _default_http_get(found: Any) -> None:
    request = found.get("httpGet") if isinstance(found, dict) else None
    if isinstance(request, dict):
        request["path"] = request.get("path") or "/"
        request["scheme"] = request.get("scheme") or "HTTP"


def _default_volume(volume: KubeObject) -> None:
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}
    for source in _VOLUME_SOURCES_WITH_MODE:
        if source in volume:
            volume[source].setdefault("defaultMode", FILE_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    for item in mappings(part(volume, "downwardAPI"), "items"):
        _default_field_reference(item)
    for source_ in mappings(part(volume, "projected"), "sources"):
        if "serviceAccountToken" in source_:
            source_["serviceAccountToken"].setdefault("expirationSeconds", TOKEN_SECONDS)
        for item in mappings(part(source_, "downwardAPI"), "items"):
            _default_field_reference(item)
    claim = part(volume, "ephemeral").get("volumeClaimTemplate")
    if isinstance(claim, dict):
        claim.setdefault("metadata", {})
        default_claim_spec(claim.setdefault("spec", {}))


def default_claim_spec(spec: KubeObject) -> None:
    """Fill in the defaults of a PersistentVolumeClaim's spec."""
    spec.setdefault("volumeMode", "Filesystem")
    if "resources" in spec:
        _canonical_resources(spec["resources"])
