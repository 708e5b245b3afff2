"""Lists, and what is sent: pages are read as far as they can be, and bindings say which pod exactly."""

import copy
import json
import pickle

import pytest

from lamina.model.node import Node
from lamina.model.pod import Pod, PodUid
from lamina.wire.errors import WireError
from lamina.wire.kube.codec import NodeList, PodList, decode_node_list, decode_pod_list, encode_binding


def a_pod(name):
    return Pod(uid=PodUid(""), name=name)


def a_page(*items, **metadata):
    return json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}).encode()


def test_a_list_is_read_with_where_it_goes_on():
    """The version for the watch that follows, the token for the next page."""
    page = a_page({"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}, resourceVersion="17", **{"continue": "xyz"})

    assert PodList(items=(a_pod("a"), a_pod("b")), resource_version="17", continue_token="xyz") == decode_pod_list(page)


def test_a_list_of_nodes_is_read_alike():
    page = b'{"kind":"NodeList","metadata":{"resourceVersion":"4"},"items":[{"metadata":{"name":"n1"}}]}'

    assert NodeList(items=(Node(name="n1"),), resource_version="4") == decode_node_list(page)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(b'{"kind":"PodList","metadata":{},"items":null}', id="null, as an API server says none"),
        pytest.param(b'{"kind":"PodList","metadata":{"continue":null},"items":[]}', id="an empty list"),
        pytest.param(b'{"kind":"List"}', id="kubectl's list"),
        pytest.param(b"{}", id="nothing at all"),
    ],
)
def test_an_empty_list_is_a_list(page):
    assert PodList(items=()) == decode_pod_list(page)


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        pytest.param({"metadata": {"name": 7}}, "Expected", id="cannot be decoded"),
        pytest.param({"kind": "Node", "metadata": {"name": "bad"}}, "this is a Node", id="is a node"),
        pytest.param([], "Expected", id="is no object"),
        pytest.param(
            {"metadata": {"name": "bad"}, "spec": {"overhead": {"cpu": "x"}}}, "spec: overhead:", id="makes no sense"
        ),
    ],
)
def test_one_pod_that_cannot_be_read_does_not_take_the_others_with_it(bad, problem):
    """It is missing from the items, and it is said."""
    page = decode_pod_list(a_page({"metadata": {"name": "a"}}, bad, {"metadata": {"name": "b"}}, resourceVersion="17"))

    assert (a_pod("a"), a_pod("b")) == page.items
    assert "17" == page.resource_version
    (refusal,) = page.refused
    assert refusal.problem.startswith(problem)
    assert refusal.__traceback__ is None


@pytest.mark.parametrize(
    ("page", "words"),
    [
        pytest.param(b"{", "cannot read PodList: Input data was truncated", id="cut short"),
        pytest.param(b'{"items":7}', "cannot read PodList: Expected", id="not a list"),
        pytest.param(b'{"kind":"NodeList","items":[]}', "cannot read PodList: this is a NodeList; ask", id="of nodes"),
        pytest.param(b'{"kind":"Status","code":410}', "cannot read PodList: this is a Status; ask", id="an error"),
        pytest.param(b'{"x":' + b"[" * 100_000, "cannot read PodList: maximum recursion depth", id="too deep"),
    ],
)
def test_what_is_not_a_list_is_refused(page, words):
    with pytest.raises(WireError) as refusal:
        decode_pod_list(page)

    assert str(refusal.value).startswith(words)


def test_a_binding_names_the_pod_by_uid_and_the_node_by_name():
    """The uid keeps a binding that comes late from catching the pod's successor."""
    pod = Pod(uid=PodUid("3f5a"), name="cart-0", namespace="shop")

    assert {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "cart-0", "namespace": "shop", "uid": "3f5a"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    } == json.loads(encode_binding(pod, "n1"))


def test_a_binding_can_carry_annotations():
    pod = Pod(uid=PodUid("3f5a"), name="cart-0")
    binding = encode_binding(pod, "n1", {"lamina.dev/why": "layers"})

    assert {"lamina.dev/why": "layers"} == json.loads(binding)["metadata"]["annotations"]
    assert binding == encode_binding(pod, "n1", {"lamina.dev/why": "layers"})


def test_a_wire_error_can_be_copied_and_sent_to_another_process():
    error = WireError("Pod", "no name", "shop/cart")

    assert [str(error)] * 2 == [str(copy.copy(error)), str(pickle.loads(pickle.dumps(error)))]
