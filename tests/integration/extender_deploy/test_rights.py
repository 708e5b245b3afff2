"""What the extender's account may do, and what it may not; and that the scheduler beside it has its lease."""

import pytest

from tests.integration.custom_resources.people import wait_until
from tests.integration.custom_resources.test_rights import OURS, may

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

EXTENDER = "system:serviceaccount:lamina-system:lamina-extender"
SCHEDULER = "system:serviceaccount:lamina-system:lamina-kube-scheduler"


@pytest.fixture(scope="module")
def rights(cluster):
    """The cluster, once its roles have taken effect."""
    wait_until(lambda: may(cluster, EXTENDER, "list", OURS, "nodelayers"))
    return cluster


READS = ("get", "list", "watch")
WRITES = ("create", "update", "patch", "delete", "deletecollection")


@pytest.mark.parametrize(
    ("verb", "group", "resource"),
    [
        pytest.param(verb, group, resource, id=f"{verb} {resource}")
        for group, resource in [
            ("", "nodes"),
            ("", "pods"),
            ("", "namespaces"),
            (OURS, "nodelayers"),
            (OURS, "imagelayers"),
        ]
        for verb in READS
    ],
)
def test_an_extender_may(rights, verb, group, resource):
    assert may(rights, EXTENDER, verb, group, resource)
    assert may(rights, SCHEDULER, verb, group, resource)


@pytest.mark.parametrize(
    ("verb", "group", "resource"),
    [
        pytest.param(verb, group, resource, id=f"{verb} {resource}")
        for group, resource, verbs in [
            ("", "nodes", WRITES),
            ("", "pods", WRITES),
            ("", "pods/binding", ("create",)),
            ("", "pods/status", ("patch",)),
            ("", "pods/eviction", ("create",)),
            ("", "pods/log", ("get",)),
            ("", "secrets", READS),
            ("", "configmaps", READS),
            ("", "events", ("create",)),
            ("coordination.k8s.io", "leases", (*READS, *WRITES)),
            (OURS, "nodelayers", WRITES),
            (OURS, "imagelayers", WRITES),
            ("metrics.k8s.io", "nodes", ("get", "list")),
        ]
        for verb in verbs
    ],
)
def test_an_extender_may_not(rights, verb, group, resource):
    assert not may(rights, EXTENDER, verb, group, resource, namespace="lamina-system")


@pytest.mark.parametrize(
    ("name", "allowed"),
    [pytest.param("my-scheduler", True, id="its own lease"), pytest.param("lamina-scheduler", False, id="another's")],
)
def test_a_lease_is_had_by_name(rights, name, allowed):
    assert allowed == may(
        rights, SCHEDULER, "update", "coordination.k8s.io", "leases", namespace="lamina-system", name=name
    )
