"""The admission policy: a node's agent writes its own NodeLayers and no other; nobody else is concerned."""

import pytest

from testbed.errors import RefusedError
from tests.integration.custom_resources.people import (
    AGENT,
    AGENTS,
    IMAGE_LAYERS,
    NODE_LAYERS,
    Bearer,
    a_node_layers,
    a_status,
    an_image,
    an_image_layers,
    forget,
    named,
    refused,
    wait_until,
)

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

MINE, OTHERS = "policy-node-a", "policy-node-b"
NOT_YOURS = f"the node agent on {MINE} can only write the NodeLayers of that node, not of {OTHERS}"
UNBOUND = "this token is not bound to a node; a node agent has to use the token of its own pod"
NO_RIGHT = "cannot delete resource"


def a_pod(name, node, account=AGENT):
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": node, "serviceAccountName": account, "containers": [{"name": "c", "image": "agent"}]},
    }


@pytest.fixture(scope="module")
def nodes(cluster):
    """Two nodes, and on the first one the pod of an agent, with more rights than it should have: to replace and to delete."""
    pods = f"/api/v1/namespaces/{AGENTS}/pods"
    made = [(pods, a_pod("policy-agent", MINE)), ("/apis/rbac.authorization.k8s.io/v1/clusterroles", DELETING)]
    made.append(("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", DELETING_AGENT))
    for name in (MINE, OTHERS):
        cluster.add_node(name)
    for path, value in made:
        cluster.api("POST", path, value)
    yield cluster
    for path, value in reversed(made):
        cluster.api("DELETE", f"{path}/{value['metadata']['name']}?gracePeriodSeconds=0")
    for name in (MINE, OTHERS):
        cluster.api("DELETE", f"/api/v1/nodes/{name}")


DELETING = {
    "metadata": {"name": "test-deleting"},
    "rules": [
        {"apiGroups": ["lamina.dev"], "resources": ["nodelayers"], "verbs": ["update", "delete", "deletecollection"]},
        {"apiGroups": ["lamina.dev"], "resources": ["nodelayers/status"], "verbs": ["update"]},
    ],
}
DELETING_AGENT = {
    "metadata": {"name": "test-deleting"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "test-deleting"},
    "subjects": [{"kind": "ServiceAccount", "name": AGENT, "namespace": AGENTS}],
}


@pytest.fixture(scope="module")
def agent(nodes):
    """The agent on MINE, with the token that its pod has; the policy is in force."""
    bearer = Bearer(nodes, nodes.service_account_token(AGENTS, AGENT, pod="policy-agent"))
    probe = ("POST", f"{NODE_LAYERS}?dryRun=All", a_node_layers("other"))
    wait_until(lambda: "can only write the NodeLayers of that node" in bearer.refusal(*probe)[1])
    # Deleting without the right to would be refused by the roles and prove nothing.
    wait_until(lambda: NO_RIGHT not in bearer.refusal("DELETE", f"{NODE_LAYERS}/{OTHERS}?dryRun=All")[1])
    yield bearer
    bearer.close()


@pytest.fixture(scope="module")
def unbound(nodes, agent):
    """Somebody with a token of the agent's account that belongs to no pod."""
    bearer = Bearer(nodes, nodes.service_account_token(AGENTS, AGENT))
    yield bearer
    bearer.close()


@pytest.fixture
def both(nodes):
    """NodeLayers of both nodes, with a status each."""
    for name in (MINE, OTHERS):
        forget(nodes, f"{NODE_LAYERS}/{name}")
        nodes.api("POST", NODE_LAYERS, a_node_layers(name))
        nodes.api("PATCH", f"{NODE_LAYERS}/{name}/status", a_status())
    yield
    for name in (MINE, OTHERS):
        forget(nodes, f"{NODE_LAYERS}/{name}")


def requests(name):
    """Every way to write a NodeLayers."""
    path = f"{NODE_LAYERS}/{name}"
    return {
        "patch": ("PATCH", path, {"metadata": {"labels": {"a": "b"}}}),
        "patch its status": ("PATCH", f"{path}/status", a_status(an_image(1))),
        "delete": ("DELETE", path, None),
    }


WAYS = list(requests(MINE))


def test_an_agent_creates_the_object_of_its_own_node(nodes, agent):
    forget(nodes, f"{NODE_LAYERS}/{MINE}")
    agent.send("POST", NODE_LAYERS, a_node_layers(MINE))

    assert MINE == nodes.api("GET", f"{NODE_LAYERS}/{MINE}")["metadata"]["name"]
    forget(nodes, f"{NODE_LAYERS}/{MINE}")


def test_an_agent_does_not_create_the_object_of_another_node(nodes, agent):
    forget(nodes, f"{NODE_LAYERS}/{OTHERS}")
    code, message = agent.refusal("POST", NODE_LAYERS, a_node_layers(OTHERS))

    assert (403, True) == (code, NOT_YOURS in message)
    with pytest.raises(RefusedError, match="not found"):
        nodes.api("GET", f"{NODE_LAYERS}/{OTHERS}")


def test_an_agent_does_not_create_an_object_whose_name_the_server_makes_up(agent):
    value = {**a_node_layers(""), "metadata": {"generateName": f"{MINE}-"}}
    code, message = agent.refusal("POST", NODE_LAYERS, value)

    assert (403, True) == (code, f"the node agent on {MINE} can only write" in message)


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_writes_the_object_of_its_own_node(agent, both, way):
    assert (0, "") == agent.refusal(*requests(MINE)[way])


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_does_not_write_the_object_of_another_node(nodes, agent, both, way):
    before = nodes.api("GET", f"{NODE_LAYERS}/{OTHERS}")
    code, message = agent.refusal(*requests(OTHERS)[way])

    assert (403, True) == (code, NOT_YOURS in message)
    assert before == nodes.api("GET", f"{NODE_LAYERS}/{OTHERS}")


@pytest.mark.parametrize("door", ["", "/status"])
def test_an_agent_does_not_replace_the_object_of_another_node(nodes, agent, both, door):
    path = f"{NODE_LAYERS}/{OTHERS}"
    value = nodes.api("GET", path)
    code, message = agent.refusal("PUT", path + door, {**value, **a_status(an_image(1))})

    assert (403, True) == (code, NOT_YOURS in message)


def test_an_agent_does_not_delete_all_objects_at_once(agent, both):
    code, message = agent.refusal("DELETE", NODE_LAYERS)

    assert (403, True) == (code, f"the node agent on {MINE} can only write the NodeLayers of that node" in message)


@pytest.mark.parametrize("way", ["create", *WAYS])
def test_a_token_that_belongs_to_no_pod_writes_nothing(nodes, unbound, both, way):
    if way == "create":
        forget(nodes, f"{NODE_LAYERS}/{MINE}")
    request = ("POST", NODE_LAYERS, a_node_layers(MINE)) if way == "create" else requests(MINE)[way]
    code, message = unbound.refusal(*request)

    assert (403, True) == (code, UNBOUND in message)


@pytest.mark.parametrize("way", WAYS)
def test_other_users_write_what_their_roles_allow(nodes, agent, both, way):
    """An administrator is not concerned."""
    assert (0, "") == refused(lambda: nodes.api(*requests(OTHERS)[way]))


def test_an_agent_creates_images_and_does_nothing_else_with_them(nodes, agent):
    path = f"{IMAGE_LAYERS}/{named('policy')}"
    forget(nodes, path)
    agent.send("POST", IMAGE_LAYERS, an_image_layers("policy"))

    assert named("policy") == agent.send("GET", path)["metadata"]["name"]
    assert 403 == agent.refusal("DELETE", path)[0]
    assert 403 == agent.refusal("PATCH", path, {})[0]
    assert 403 == agent.refusal("GET", IMAGE_LAYERS)[0]
    forget(nodes, path)


def test_an_agent_reads_no_pods_and_no_secrets(agent):
    paths = [f"/api/v1/namespaces/{AGENTS}/pods", "/api/v1/secrets", "/api/v1/nodes", NODE_LAYERS]

    assert [403] * 4 == [agent.refusal("GET", path)[0] for path in paths]
