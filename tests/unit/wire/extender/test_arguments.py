"""What kube-scheduler asks of an extender: both forms, any spelling, and what is wrong with what cannot be read."""

import json

import pytest

from lamina.wire.errors import WireError
from lamina.wire.extender.arguments import decode_extender_args, read_nodes
from lamina.wire.extender.body import LARGE, MOST_NODES, OBJECT, SMALL
from tests.unit.wire.extender_bodies import NAMES, NODES, POD, a_node, asking, encode, nodes


def test_names_as_kube_scheduler_sends_them():
    asked = decode_extender_args(NAMES)

    assert asked.pod.key == "default/cart-0"
    assert asked.pod.priority == 1
    assert asked.names == ["n1", "n2"]
    assert asked.items is None
    assert asked.nodes is None
    assert read_nodes(asked) == []


def test_whole_nodes_as_kube_scheduler_sends_them():
    asked = decode_extender_args(NODES)

    assert asked.names == ["n1", "n2"]
    assert [json.loads(bytes(text)) for text in asked.nodes] == json.loads(NODES)["Nodes"]["items"]
    assert [node.images[0].names for node in read_nodes(asked)] == [("example.com/n1:1",), ("example.com/n2:1",)]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda body: memoryview(bytearray(body))])
@pytest.mark.parametrize("body", [pytest.param(NAMES, id="names"), pytest.param(NODES, id="nodes")])
def test_a_body_may_come_in_any_kind_of_memory(kind, body):
    assert decode_extender_args(kind(body)).names == ["n1", "n2"]


@pytest.mark.parametrize("pod", ["Pod", "pod", "POD"])
@pytest.mark.parametrize("names", ["NodeNames", "nodeNames", "nodenames", "NODENAMES", "Nodenames"])
def test_keys_of_names_are_read_in_any_spelling(pod, names):
    asked = decode_extender_args(encode({pod: POD, names: ["n1"]}))

    assert (asked.pod.name, asked.names) == ("p", ["n1"])


@pytest.mark.parametrize("key", ["Nodes", "nodes", "NODES"])
@pytest.mark.parametrize("items", ["items", "Items", "ITEMS"])
def test_keys_of_nodes_are_read_in_any_spelling(key, items):
    assert decode_extender_args(asking(**{key: {items: [a_node("n1")]}})).names == ["n1"]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param({"NodeNames": []}, [], id="no names"),
        pytest.param({"Nodes": {"items": []}}, [], id="no nodes"),
        pytest.param({"NodeNames": ["a", "b", "a"]}, ["a", "b", "a"], id="a name twice"),
        pytest.param({"Nodes": nodes("a", "a")}, ["a", "a"], id="a node twice"),
        pytest.param({"NodeNames": ["a"], "Nodes": None}, ["a"], id="null is nothing: nodes"),
        pytest.param({"NodeNames": None, "Nodes": nodes("a")}, ["a"], id="null is nothing: names"),
        pytest.param({"NodeNames": None, "nodenames": ["a"]}, ["a"], id="null is nothing: another spelling"),
        pytest.param({"NodeNames": ["ü", 'a"b\\c\n']}, ["ü", 'a"b\\c\n'], id="odd names"),
        pytest.param({"NodeNames": ["a"], "Extra": {"deep": [1]}}, ["a"], id="a key of a later version"),
        pytest.param({"Nodes": {"kind": "NodeList", "items": [a_node("a", status={})]}}, ["a"], id="a kind"),
    ],
)
def test_which_nodes_are_asked_about(keys, expected):
    assert decode_extender_args(asking(**keys)).names == expected


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(asking(), "neither Nodes nor NodeNames is set", id="neither"),
        pytest.param(asking(Nodes=None, NodeNames=None), "neither Nodes nor NodeNames is set", id="both null"),
        pytest.param(asking(Node_Names=["a"]), "neither Nodes nor NodeNames is set", id="an unknown spelling"),
        pytest.param(asking(Nodes=nodes("a"), NodeNames=["a"]), "Nodes and NodeNames are both set", id="both"),
        pytest.param(asking(Nodes=nodes("a"), nodenames=[]), "Nodes and NodeNames are both set", id="both, one empty"),
        pytest.param(asking(NodeNames=["a"], nodenames=["b"]), "has NodeNames twice, once as nodenames", id="twice"),
        pytest.param(
            asking(Nodes={"items": [], "Items": []}), "has items twice, once as Items", id="twice, further inside"
        ),
        pytest.param(asking(Nodes={"metadata": {}}), "Nodes has no items", id="a list without items"),
        pytest.param(asking(Nodes={"items": None}), "Nodes has no items", id="null instead of items"),
        pytest.param(asking(Nodes=[]), "Expected `object | null`, got `array` - at `$.Nodes`", id="nodes: an array"),
        pytest.param(asking(Nodes={"items": [1]}), "Nodes.items: Expected `object`, got `int`", id="no node"),
        pytest.param(asking(Nodes={"items": {}}), "Nodes.items: Expected `array`, got `object`", id="items: an object"),
        pytest.param(asking(Nodes={"items": [{}]}), "a node without metadata.name", id="a node without metadata.name"),
        pytest.param(asking(Nodes=nodes("a", "")), "a node without metadata.name - at `$[1]`", id="an empty name"),
        pytest.param(asking(NodeNames="a"), "got `str` - at `$.NodeNames`", id="names: a text"),
        pytest.param(asking(NodeNames=[None]), "got `null` - at `$.NodeNames[0]`", id="names: null"),
        pytest.param(encode({"NodeNames": []}), "it has no Pod", id="no pod"),
        pytest.param(encode({"Pod": None, "NodeNames": []}), "it has no Pod", id="a null pod"),
        pytest.param(encode({"Pod": [], "NodeNames": []}), "cannot read Pod: Expected `object`", id="pod: an array"),
        pytest.param(encode({"Pod": {"kind": "Node"}, "NodeNames": []}), "this is a Node", id="another kind"),
        pytest.param(
            encode({"Pod": {"spec": {"containers": [{"resources": {"requests": {"cpu": "x"}}}]}}, "NodeNames": []}),
            "cannot read Pod",
            id="a pod that makes no sense",
        ),
        pytest.param(b"", "Input data was truncated", id="nothing"),
        pytest.param(b"[]", "Expected `object`, got `array`", id="an array"),
        pytest.param(NAMES[:-1], "Input data was truncated", id="cut short"),
        pytest.param(NAMES + b"x", "trailing characters", id="more after its end"),
        pytest.param(b'{"NodeNames":["\xff"]}', "can't decode byte", id="no UTF-8"),
        pytest.param(b'{"NodeNames":["\\ud800"]}', "cannot read ExtenderArgs", id="half a surrogate"),
        pytest.param(b'{"x":' + b"[" * 100_000, "recursion", id="a deep one"),
        pytest.param(b'{"Pod":{},"Nodes":{"items":[' + b'{"a":' * 100_000, "recursion", id="a deep node"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(body, words):
    with pytest.raises(WireError) as error:
        decode_extender_args(body)

    assert words in str(error.value)
    assert str(error.value).isprintable()


# ---------------------------------------------------------------------------------------------------------------- bounds


def padded(body, size):
    """The body with spaces after it, to a size."""
    return body + b" " * (size - len(body))


@pytest.mark.parametrize(
    ("body", "size"),
    [
        pytest.param(asking(NodeNames=["a"]), SMALL, id="names"),
        pytest.param(asking(Nodes=nodes("a")), LARGE, id="nodes"),
    ],
)
def test_a_body_may_have_its_full_size_and_no_more(body, size):
    assert decode_extender_args(padded(body, size)).names == ["a"]
    with pytest.raises(WireError, match=f"has {size + 1} bytes, the limit is {size}"):
        decode_extender_args(padded(body, size + 1))


def test_whole_nodes_that_are_too_large_are_told_what_to_do():
    with pytest.raises(WireError, match="set nodeCacheCapable to true"):
        decode_extender_args(bytearray(LARGE + 1))


@pytest.mark.parametrize("form", ["NodeNames", "Nodes"])
def test_a_call_may_ask_about_as_many_nodes_as_there_may_be_and_no_more(form):
    names = [f"n{number}" for number in range(MOST_NODES)]

    def call(those):
        return asking(NodeNames=those) if form == "NodeNames" else asking(Nodes=nodes(*those))

    assert decode_extender_args(call(names)).names == names
    with pytest.raises(WireError, match="more than 20000 nodes in one request; lower percentageOfNodesToScore"):
        decode_extender_args(call([*names, "one"]))


def test_counting_begins_anew_with_each_body():
    names = [f"n{number}" for number in range(MOST_NODES // 2 + 1)]

    for last in "abc":
        assert len(decode_extender_args(asking(Nodes=nodes(*names, last))).names) == MOST_NODES // 2 + 2


# ----------------------------------------------------------------------------------------------------------------- twice


def test_the_same_question_again_is_answered_from_memory():
    first = decode_extender_args(bytearray(NAMES))

    assert decode_extender_args(bytearray(NAMES)) is first
    assert decode_extender_args(NODES) is not first
    assert decode_extender_args(NAMES) is not first
    assert decode_extender_args(NAMES).names == first.names


def test_what_is_remembered_does_not_follow_a_body_that_is_used_again():
    body = bytearray(NAMES)
    asked = decode_extender_args(body)
    body[:] = b" " * len(body)

    assert decode_extender_args(NAMES).names == asked.names == ["n1", "n2"]


# ------------------------------------------------------------------------------------------------------------ whole nodes


def test_a_node_that_makes_no_sense_does_not_take_the_others_with_it():
    strange = a_node("b", status={"allocatable": {"cpu": "much"}})
    asked = decode_extender_args(asking(Nodes={"items": [a_node("a"), strange, a_node("c")]}))
    refused: list[WireError] = []

    assert [node.name for node in read_nodes(asked, refused)] == ["a", "c"]
    assert [error.name for error in refused] == ["b"]
    assert [node.name for node in read_nodes(asked)] == ["a", "c"]


def test_a_node_that_is_larger_than_any_is_not_read():
    large = a_node("b", status={"images": [{}] * (OBJECT // 3)})
    asked = decode_extender_args(asking(Nodes={"items": [a_node("a"), large]}))
    refused: list[WireError] = []

    assert asked.names == ["a", "b"]
    assert [node.name for node in read_nodes(asked, refused)] == ["a"]
    assert [f"the limit is {OBJECT}" in str(error) for error in refused] == [True]


def test_whole_nodes_are_taken_apart_once():
    asked = decode_extender_args(NODES)

    assert asked.nodes is asked.nodes
