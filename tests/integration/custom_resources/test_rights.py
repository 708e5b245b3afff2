"""Roles: what agents, the scheduler and people may do, and what they may not."""

import pytest

from tests.integration.custom_resources.people import AGENT, AGENTS, DEPLOY, wait_until

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

OURS = "lamina.dev"
AGENT_USER = f"system:serviceaccount:{AGENTS}:{AGENT}"
SCHEDULER_USER = "system:serviceaccount:lamina-system:lamina-scheduler"
ANNOTATOR_USER = "system:serviceaccount:lamina-system:lamina-annotator"
VIEWER_USER = "somebody-with-lamina-viewer"
STORAGE = ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments")


@pytest.fixture(scope="module")
def rights(cluster):
    """The cluster, once its roles have taken effect, and a person who was given the viewer's."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "test-viewer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lamina-viewer"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": VIEWER_USER}],
    }
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    cluster.api("POST", path, binding)
    wait_until(lambda: may(cluster, VIEWER_USER, "list", OURS, "nodelayers"))
    yield cluster
    cluster.api("DELETE", f"{path}/test-viewer")


def may(cluster, user, verb, group, resource, *, namespace="", name=""):
    """What the API server's own authoriser says."""
    resource, _, subresource = resource.partition("/")
    asked = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    spec = {"user": user, "resourceAttributes": {**asked, "namespace": namespace, "name": name}}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return cluster.api("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]


@pytest.mark.parametrize(
    ("verb", "group", "resource"),
    [
        pytest.param(verb, OURS, resource, id=f"{verb} {resource}")
        for resource, verbs in {
            "nodelayers": ("get", "create", "patch"),
            "nodelayers/status": ("patch",),
            "imagelayers": ("get", "create"),
        }.items()
        for verb in verbs
    ],
)
def test_an_agent_may(rights, verb, group, resource):
    assert may(rights, AGENT_USER, verb, group, resource)


@pytest.mark.parametrize(
    ("verb", "group", "resource"),
    [
        pytest.param(verb, group, resource, id=f"{verb} {resource}")
        for group, resource, verbs in [
            (OURS, "nodelayers", ("list", "watch", "update", "delete", "deletecollection")),
            (OURS, "nodelayers/status", ("update",)),
            (OURS, "imagelayers", ("list", "watch", "update", "patch", "delete", "deletecollection")),
            ("", "nodes", ("get", "list", "watch", "patch")),
            ("", "pods", ("get", "list", "watch", "create", "delete")),
            ("", "secrets", ("get", "list")),
            ("", "configmaps", ("get",)),
            ("", "serviceaccounts/token", ("create",)),
            ("rbac.authorization.k8s.io", "clusterroles", ("escalate", "bind", "patch")),
            ("admissionregistration.k8s.io", "validatingadmissionpolicies", ("get", "patch", "delete")),
        ]
        for verb in verbs
    ],
)
def test_an_agent_may_not(rights, verb, group, resource):
    assert not may(rights, AGENT_USER, verb, group, resource, namespace=AGENTS)
    assert not may(rights, AGENT_USER, verb, group, resource)


@pytest.mark.parametrize(
    ("verb", "group", "resource"),
    [
        pytest.param(verb, group, resource, id=f"{verb} {resource}")
        for group, resource, verbs in [
            ("", "nodes", ("list", "watch")),
            ("", "namespaces", ("list", "watch")),
            ("", "pods", ("get", "list", "watch")),
            ("", "services", ("list", "watch")),
            ("", "replicationcontrollers", ("list", "watch")),
            ("apps", "replicasets", ("list", "watch")),
            ("apps", "statefulsets", ("list", "watch")),
            ("", "pods/binding", ("create",)),
            ("", "pods/status", ("patch",)),
            ("", "persistentvolumes", ("get", "list", "watch", "patch")),
            ("", "persistentvolumeclaims", ("get", "list", "watch", "patch")),
            *(("storage.k8s.io", reported, ("list", "watch")) for reported in STORAGE),
            ("events.k8s.io", "events", ("create", "patch")),
            (OURS, "nodelayers", ("list", "watch")),
            (OURS, "imagelayers", ("list", "watch", "delete")),
        ]
        for verb in verbs
    ],
)
def test_the_scheduler_may(rights, verb, group, resource):
    assert may(rights, SCHEDULER_USER, verb, group, resource)


@pytest.mark.parametrize(
    ("verb", "group", "resource"),
    [
        pytest.param(verb, group, resource, id=f"{verb} {resource}")
        for group, resource, verbs in [
            ("", "nodes", ("get", "create", "update", "patch", "delete")),
            ("", "nodes/status", ("patch",)),
            ("", "pods", ("create", "update", "patch", "delete", "deletecollection")),
            ("", "pods/exec", ("create",)),
            ("", "pods/eviction", ("create",)),
            ("", "persistentvolumes", ("create", "update", "delete")),
            ("", "persistentvolumeclaims", ("create", "update", "delete")),
            *(("storage.k8s.io", reported, ("create", "patch")) for reported in STORAGE),
            ("", "secrets", ("get", "list", "watch")),
            ("", "configmaps", ("get", "list")),
            ("", "services", ("create", "update", "patch", "delete")),
            ("apps", "replicasets", ("update", "patch", "delete")),
            (OURS, "nodelayers", ("create", "update", "patch", "delete")),
            (OURS, "nodelayers/status", ("patch",)),
            (OURS, "imagelayers", ("create", "update", "patch", "deletecollection")),
        ]
        for verb in verbs
    ],
)
def test_the_scheduler_may_not(rights, verb, group, resource):
    assert not may(rights, SCHEDULER_USER, verb, group, resource, namespace="lamina-system")
    assert not may(rights, SCHEDULER_USER, verb, group, resource)


@pytest.mark.parametrize(
    ("verb", "namespace", "name", "allowed"),
    [
        pytest.param("get", "lamina-system", "lamina-scheduler", True, id="get its own"),
        pytest.param("update", "lamina-system", "lamina-scheduler", True, id="renew its own"),
        pytest.param("create", "lamina-system", "", True, id="create it"),
        pytest.param("patch", "lamina-system", "lamina-scheduler", False, id="patch its own"),
        pytest.param("update", "lamina-system", "other", False, id="renew another"),
        pytest.param("list", "lamina-system", "", False, id="list"),
        pytest.param("delete", "lamina-system", "lamina-scheduler", False, id="delete"),
        pytest.param("update", "kube-system", "kube-scheduler", False, id="renew kube-scheduler's"),
        pytest.param("create", "kube-system", "", False, id="create elsewhere"),
    ],
)
def test_the_scheduler_has_one_lease(rights, verb, namespace, name, allowed):
    assert allowed == may(rights, SCHEDULER_USER, verb, "coordination.k8s.io", "leases", namespace=namespace, name=name)


@pytest.mark.parametrize(
    ("verb", "group", "resource", "allowed"),
    [
        pytest.param("list", OURS, "nodelayers", True, id="list nodelayers"),
        pytest.param("watch", OURS, "imagelayers", True, id="watch imagelayers"),
        pytest.param("list", "", "nodes", True, id="list nodes"),
        pytest.param("get", "", "pods", True, id="get pods"),
        pytest.param("create", OURS, "imagelayers", False, id="create imagelayers"),
        pytest.param("patch", OURS, "nodelayers/status", False, id="patch nodelayers"),
        pytest.param("get", "", "secrets", False, id="get secrets"),
        pytest.param("delete", "", "pods", False, id="delete pods"),
    ],
)
def test_a_viewer_reads_what_explanations_need(rights, verb, group, resource, allowed):
    assert allowed == may(rights, VIEWER_USER, verb, group, resource)


OPTIONAL = [
    pytest.param("scheduler-preemption.yaml", SCHEDULER_USER, "delete", "pods", id="the scheduler deletes pods"),
    pytest.param(
        "scheduler-preemption.yaml", SCHEDULER_USER, "create", "pods/eviction", id="the scheduler evicts pods"
    ),
    pytest.param("annotator.yaml", ANNOTATOR_USER, "patch", "nodes", id="an annotator patches nodes"),
]


@pytest.mark.parametrize(("file", "user", "verb", "resource"), OPTIONAL)
def test_an_optional_permission_is_granted_by_its_own_file_only(rights, file, user, verb, resource):
    """`kubectl apply -f deploy/rbac`, which the fixture ran, does not reach into the folder below."""
    path = str(DEPLOY / "rbac" / "optional" / file)
    # Another test of this control plane may have applied the file for itself.
    rights.kubectl("delete", "--ignore-not-found", "-f", path)
    rights.kubectl("apply", "-f", str(DEPLOY / "rbac"))
    wait_until(lambda: not may(rights, user, verb, "", resource))

    rights.kubectl("apply", "-f", path)
    wait_until(lambda: may(rights, user, verb, "", resource))

    rights.kubectl("delete", "-f", path)
    wait_until(lambda: not may(rights, user, verb, "", resource))
