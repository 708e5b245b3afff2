"""Objects on their way through admission, and what becomes of them; shared by the tests of admission."""

import copy

import pytest

from lamina.simulator.facade.admission import AdmissionContext, admit_create
from lamina.simulator.facade.api_errors import StatusError
from lamina.simulator.facade.resource_types import ResourceTypes

TYPES = ResourceTypes()
CLASSES = {
    "high": {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "PreemptLowerPriority"},
    "never": {"metadata": {"name": "never"}, "value": 500, "preemptionPolicy": "Never"},
}
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def context(default=None, **changes):
    return AdmissionContext(
        now=lambda: 1_700_000_000.5,
        priority_class=CLASSES.get,
        default_priority_class=lambda: default,
        namespace_exists=lambda _: True,
        **changes,
    )


def pod(spec=None, metadata=None, **container):
    containers = [{"name": "c", "image": "x", **container}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", **(metadata or {})},
        "spec": {"containers": containers, **(spec or {})},
    }


def admit(found, using=None):
    type_ = TYPES.by_kind(found["apiVersion"], found["kind"])
    before = copy.deepcopy(found)
    admitted = admit_create(type_, found, using or context())
    assert found == before, "admission changed what the client sent"
    return admitted


def refusal(found, using=None):
    with pytest.raises(StatusError) as error:
        admit(found, using)
    return error.value


def cluster_object(kind, api_version="v1", name="x", **fields):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def workload(kind, restart=None, **changes):
    pod_spec = {"containers": [{"name": "c", "image": "x"}], **({"restartPolicy": restart} if restart else {})}
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod_spec},
        **changes,
    }
    kept = {name: value for name, value in spec.items() if value is not None}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": kept}
