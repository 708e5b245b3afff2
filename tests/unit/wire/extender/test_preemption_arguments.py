"""What kube-scheduler asks before it evicts: both forms, any spelling, and what is wrong with what cannot be read."""

import json

import pytest

from lamina.wire.errors import WireError
from lamina.wire.extender.body import LARGE, MOST_NODES, MOST_VICTIMS, SMALL
from lamina.wire.extender.preemption_arguments import ExtenderVictims, decode_preemption_args
from tests.unit.wire.extender_bodies import META_VICTIMS, VICTIMS, asking, encode


def uids(body, key):
    """What the standard library finds: for each node the uids of its victims."""
    return {
        node: tuple(pod["UID"] if "UID" in pod else pod["metadata"]["uid"] for pod in those["Pods"])
        for node, those in json.loads(body)[key].items()
    }


def test_uids_as_kube_scheduler_sends_them():
    asked = decode_preemption_args(META_VICTIMS)

    assert asked.meta
    assert asked.pod.key == "default/till"
    assert asked.pod.priority == 1000
    assert {node: those.uids for node, those in asked.victims.items()} == uids(META_VICTIMS, "NodeNameToMetaVictims")
    assert {those.violations for those in asked.victims.values()} == {0}


def test_whole_pods_as_kube_scheduler_sends_them():
    asked = decode_preemption_args(VICTIMS)

    assert not asked.meta
    assert asked.pod.key == "default/till"
    assert {node: those.uids for node, those in asked.victims.items()} == uids(VICTIMS, "NodeNameToVictims")


@pytest.mark.parametrize("key", ["NodeNameToMetaVictims", "nodeNameToMetaVictims", "nodenametometavictims"])
@pytest.mark.parametrize("pods", ["Pods", "pods", "PODS"])
@pytest.mark.parametrize("uid", ["UID", "uid", "Uid"])
@pytest.mark.parametrize("count", ["NumPDBViolations", "numPDBViolations", "numPdbViolations", "numpdbviolations"])
def test_keys_are_read_in_any_spelling(key, pods, uid, count):
    body = asking(**{key: {"n1": {pods: [{uid: "a"}, {uid: "b"}], count: 2}}})

    assert decode_preemption_args(body).victims == {"n1": ExtenderVictims(("a", "b"), 2)}


@pytest.mark.parametrize("key", ["NodeNameToVictims", "nodeNameToVictims", "nodenametovictims"])
def test_whole_pods_are_read_in_any_spelling(key):
    body = asking(**{key: {"n1": {"pods": [{"metadata": {"uid": "a"}, "spec": {}}]}}})

    assert decode_preemption_args(body).victims == {"n1": ExtenderVictims(("a",), 0)}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param({}, {}, id="no node"),
        pytest.param({"n1": {"Pods": []}}, {"n1": ExtenderVictims(())}, id="no victims"),
        pytest.param(
            {"n1": {"Pods": [{"UID": "a"}], "NumPDBViolations": None}}, {"n1": ExtenderVictims(("a",))}, id="null"
        ),
        pytest.param({"": {"Pods": [{"UID": "a"}]}}, {"": ExtenderVictims(("a",))}, id="a node without metadata.name"),
    ],
)
def test_victims_of_each_node(found, expected):
    assert decode_preemption_args(asking(NodeNameToMetaVictims=found, NodeNameToVictims=None)).victims == expected


A_VICTIM = {"n1": {"Pods": [{"UID": "a"}]}}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(asking(), "neither NodeNameToVictims nor NodeNameToMetaVictims is set", id="neither"),
        pytest.param(asking(NodeNameToVictims=None), "neither NodeNameToVictims nor", id="null"),
        pytest.param(asking(NodeNameToVictims={}, NodeNameToMetaVictims={}), "are both set", id="both"),
        pytest.param(
            asking(NodeNameToMetaVictims={}, nodenametometavictims={}), "has NodeNameToMetaVictims twice", id="twice"
        ),
        pytest.param(asking(NodeNameToMetaVictims={"n1": None}), "got `null`", id="null under a node"),
        pytest.param(asking(NodeNameToMetaVictims={"n1": {}}), "there are no Pods for node n1", id="no pods"),
        pytest.param(asking(NodeNameToVictims={"n1": {"Pods": None}}), "there are no Pods for node n1", id="null pods"),
        pytest.param(
            asking(NodeNameToMetaVictims={"n1": {"Pods": [{}]}}), "a victim on node n1 has no uid", id="no uid"
        ),
        pytest.param(
            asking(NodeNameToVictims={"n1": {"Pods": [{"metadata": {"name": "a"}}]}}),
            "a victim on node n1 has no uid",
            id="a pod without a uid",
        ),
        pytest.param(asking(NodeNameToMetaVictims={"n1": {"Pods": [None]}}), "got `null`", id="a null victim"),
        pytest.param(
            asking(NodeNameToMetaVictims={"n1": {"Pods": [], "NumPDBViolations": -1}}), ">= 0", id="less than none"
        ),
        pytest.param(
            asking(NodeNameToMetaVictims={"n1": {"Pods": [], "NumPDBViolations": 2**63}}),
            "<=",
            id="more than Go counts",
        ),
        pytest.param(
            asking(NodeNameToMetaVictims={"n1": {"Pods": [], "NumPDBViolations": 1.5}}), "got `float`", id="a fraction"
        ),
        pytest.param(asking(NodeNameToMetaVictims=[]), "Expected `object`, got `array`", id="an array"),
        pytest.param(encode({"NodeNameToMetaVictims": A_VICTIM}), "it has no Pod", id="no pod"),
        pytest.param(META_VICTIMS[:-1], "Input data was truncated", id="cut short"),
        pytest.param(b'{"NodeNameToVictims":' + b'{"a":' * 100_000, "cannot read", id="a deep one"),
        pytest.param(b'{"Pod":' + b"[" * 100_000, "recursion", id="a deep pod"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(body, words):
    with pytest.raises(WireError) as error:
        decode_preemption_args(body)

    assert words in str(error.value)
    assert str(error.value).isprintable()


# ---------------------------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize(
    ("body", "size"),
    [
        pytest.param(asking(NodeNameToMetaVictims=A_VICTIM), SMALL, id="uids"),
        pytest.param(asking(NodeNameToVictims={"n1": {"Pods": [{"metadata": {"uid": "a"}}]}}), LARGE, id="whole pods"),
    ],
)
def test_a_body_may_have_its_full_size_and_no_more(body, size):
    assert decode_preemption_args(body + b" " * (size - len(body))).victims == {"n1": ExtenderVictims(("a",))}
    with pytest.raises(WireError, match=f"has {size + 1} bytes, the limit is {size}"):
        decode_preemption_args(body + b" " * (size + 1 - len(body)))


@pytest.mark.parametrize("key", ["NodeNameToMetaVictims", "NodeNameToVictims"])
def test_nodes_are_counted(key):
    names: dict[str, object] = {f"n{number}": {"Pods": []} for number in range(MOST_NODES)}

    assert len(decode_preemption_args(asking(**{key: names})).victims) == MOST_NODES
    with pytest.raises(WireError, match="more than 20000 nodes"):
        decode_preemption_args(asking(**{key: {**names, "one": {"Pods": []}}}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "pod"),
    [
        pytest.param("NodeNameToMetaVictims", {"UID": "a"}, id="uids"),
        pytest.param("NodeNameToVictims", {"metadata": {"uid": "a"}}, id="whole pods"),
    ],
)
def test_victims_are_counted(key, pod):
    half = [pod] * (MOST_VICTIMS // 2)

    asked = decode_preemption_args(asking(**{key: {"n1": {"Pods": half}, "n2": {"Pods": half}}}))
    assert sum(len(those.uids) for those in asked.victims.values()) == MOST_VICTIMS
    with pytest.raises(WireError, match="more than 200000 victims"):
        decode_preemption_args(asking(**{key: {"n1": {"Pods": half}, "n2": {"Pods": [*half, pod]}}}))
