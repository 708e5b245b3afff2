"""The shared control plane is a real one: it serves, it authorises, it knows its nodes."""

import json
import re
import ssl
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import yaml

from testbed import KubectlError, Node, RefusedError
from tests.integration.testbed.waiting import eventually

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

PODS = "/api/v1/namespaces/default/pods"


def pod(name, **spec):
    containers = [{"name": "c", "image": "example.com/none:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def test_it_serves_the_version_it_was_asked_for(control_plane):
    assert control_plane.version == "1.36.3"
    assert control_plane.api("GET", "/version")["gitVersion"] == "v1.36.3"


def test_it_listens_on_the_loopback_interface_only(control_plane):
    """Every listening socket of its processes, as the kernel lists them."""
    held = {
        str(descriptor.readlink())
        for part in control_plane.parts.values()
        for descriptor in Path(f"/proc/{part.pid}/fd").iterdir()
    }
    rows = [
        line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    # Column 1 is the address, 3 the state (0A: listening), 9 the socket's number.
    addresses = [row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in held]

    # 127.0.0.1 with the lowest byte first. Three sockets: clients and peers of etcd, and the API server.
    assert addresses == ["0100007F"] * 3


def test_a_user_without_a_role_may_do_nothing(control_plane):
    with pytest.raises(RefusedError, match=r"nobody-in-particular.*cannot list") as refused:
        control_plane.api("GET", PODS, as_user="nobody-in-particular")

    assert refused.value.status == 403


def test_a_user_with_a_role_may_do_what_it_says(control_plane):
    """The certificate makes the user, the binding makes the right. Authorisers hear of a new one a moment later."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    control_plane.api("POST", f"{rbac}/clusterroles", {"metadata": {"name": "lister"}, "rules": rules})
    binding = {
        "metadata": {"name": "listers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lister"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "listers"}],
    }
    control_plane.api("POST", f"{rbac}/clusterrolebindings", binding)
    kubeconfig = str(control_plane.kubeconfig("ada", ["listers"]))

    def may(verb):
        try:
            return control_plane.kubectl(f"--kubeconfig={kubeconfig}", "auth", "can-i", verb, "pods") == "yes\n"
        except KubectlError:  # kubectl fails when the answer is no
            return False

    assert eventually(lambda: may("list"))
    assert not may("delete")


def test_a_kubeconfig_says_who_one_is_and_its_file_is_private(control_plane):
    path = control_plane.kubeconfig("system:serviceaccount:a:b", ["x/y"])

    assert path.stat().st_mode & 0o077 == 0
    assert yaml.safe_load(path.read_text())["clusters"][0]["cluster"]["server"] == control_plane.url


@pytest.mark.parametrize("other", [("a.b", []), ("a:b", ["g"]), ("a-b", [])], ids=str)
def test_identities_that_look_alike_have_files_of_their_own(control_plane, other):
    assert control_plane.kubeconfig("a:b") != control_plane.kubeconfig(*other)
    assert control_plane.kubeconfig("a:b") == control_plane.kubeconfig("a:b")


def test_a_node_is_ready_and_has_only_the_taints_that_were_asked_for(control_plane):
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    image = {"names": ["example.com/a:1"], "sizeBytes": 7}
    control_plane.add_node("plain", labels={"zone": "a"}, images=[image], resources={"example.com/gpu": "2"})
    control_plane.add_node("tainted", taints=[taint])

    plain, tainted = (control_plane.api("GET", f"/api/v1/nodes/{name}") for name in ("plain", "tainted"))

    assert [(c["type"], c["status"]) for c in plain["status"]["conditions"]] == [("Ready", "True")]
    assert "taints" not in plain["spec"]
    assert tainted["spec"]["taints"] == [taint]
    assert plain["metadata"]["labels"]["zone"] == "a"
    assert plain["status"]["images"] == [image]
    assert plain["status"]["allocatable"]["example.com/gpu"] == "2"


def test_many_nodes_can_be_added_at_once(control_plane):
    control_plane.add_nodes([Node(f"many-{number}", labels={"crowd": "yes"}) for number in range(30)])

    crowd = control_plane.api("GET", "/api/v1/nodes?labelSelector=crowd%3Dyes")["items"]

    assert len(crowd) == 30
    assert all("taints" not in node["spec"] for node in crowd)


def test_a_pod_needs_no_service_account_where_nobody_makes_one(control_plane):
    control_plane.api("POST", PODS, pod("without-account"))

    assert control_plane.api("GET", f"{PODS}/without-account")["status"]["phase"] == "Pending"


def test_a_token_bound_to_a_pod_names_its_node(control_plane):
    """What admission policies for agents on nodes rest on."""
    control_plane.add_node("tokens")
    control_plane.api("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "agent"}})
    control_plane.api("POST", PODS, pod("agent", serviceAccountName="agent", nodeName="tokens"))
    token = control_plane.service_account_token("default", "agent", pod="agent")

    review = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token}}
    user = control_plane.api("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]["user"]

    assert user["username"] == "system:serviceaccount:default:agent"
    assert user["extra"]["authentication.kubernetes.io/node-name"] == ["tokens"]


def test_a_token_of_a_service_account_authenticates(control_plane):
    control_plane.api("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "caller"}})
    token = control_plane.service_account_token("default", "caller")

    context = ssl.create_default_context(cafile=str(control_plane.ca_file))
    request = Request(f"{control_plane.url}/version", headers={"Authorization": f"Bearer {token}"})
    with urlopen(request, context=context, timeout=30) as answer:
        assert json.load(answer)["gitVersion"] == "v1.36.3"


def test_what_the_server_refuses_is_said_in_its_words(control_plane):
    with pytest.raises(RefusedError) as refused:
        control_plane.api("GET", f"{PODS}/nothing")

    assert str(refused.value) == f'GET {PODS}/nothing: 404 NotFound: pods "nothing" not found'


def test_kubectl_takes_a_document_and_fails_in_its_own_words(control_plane):
    document = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})

    assert control_plane.kubectl("apply", "-f", "-", stdin=document) == "configmap/c created\n"
    with pytest.raises(KubectlError, match=re.escape('configmaps "d" not found')):
        control_plane.kubectl("get", "configmap", "d")
