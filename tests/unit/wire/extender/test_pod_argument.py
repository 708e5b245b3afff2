"""The pod in a body for an extender: read once, and bounded."""

import pytest

from lamina.wire.errors import WireError
from lamina.wire.extender import pod_argument
from lamina.wire.extender.arguments import decode_extender_args
from lamina.wire.extender.body import MOST_CONTAINERS, OBJECT
from lamina.wire.extender.preemption_arguments import decode_preemption_args
from lamina.wire.kube.codec import decode_pod
from tests.unit.wire.extender_bodies import encode


def a_large_pod(containers, init=0):
    """A pod that is large enough for its containers to be counted."""
    return {
        "metadata": {"name": "p", "annotations": {"a": "x" * 70_000}},
        "spec": {"containers": [{"image": "app"}] * containers, "initContainers": [{"image": "init"}] * init},
    }


BODIES = [
    pytest.param(decode_extender_args, {"NodeNames": ["a"]}, id="names"),
    pytest.param(decode_extender_args, {"Nodes": {"items": []}}, id="nodes"),
    pytest.param(decode_preemption_args, {"NodeNameToMetaVictims": {}}, id="preemption"),
]


@pytest.mark.parametrize(("decode", "rest"), BODIES)
def test_a_pod_may_have_its_full_size_and_no_more(decode, rest):
    pod = {"metadata": {"annotations": {"a": ""}}}
    pod["metadata"]["annotations"]["a"] = "x" * (OBJECT - len(encode(pod)))

    assert decode(encode({"Pod": pod, **rest})).pod.annotations == pod["metadata"]["annotations"]
    pod["metadata"]["annotations"]["a"] += "x"
    with pytest.raises(WireError, match=f"the Pod has {OBJECT + 1} bytes, the limit is {OBJECT}"):
        decode(encode({"Pod": pod, **rest}))


@pytest.mark.parametrize(("decode", "rest"), BODIES)
def test_the_containers_of_a_large_pod_are_counted(decode, rest):
    allowed = decode(encode({"Pod": a_large_pod(MOST_CONTAINERS - 1, 1), **rest})).pod

    assert (len(allowed.containers), len(allowed.init_containers)) == (MOST_CONTAINERS - 1, 1)
    with pytest.raises(WireError, match=r"Pod: more than 1000 containers - at `\$.spec.initContainers\[0\]`"):
        decode(encode({"Pod": a_large_pod(MOST_CONTAINERS, 1), **rest}))


def test_a_large_pod_that_makes_no_sense_is_told_so():
    pod = {"metadata": {"annotations": {"a": "x" * 70_000}}, "spec": []}

    with pytest.raises(WireError, match=r"Pod: Expected `object \| null`, got `array`"):
        decode_extender_args(encode({"Pod": pod, "NodeNames": []}))


def test_the_pod_of_the_last_question_is_not_read_again(monkeypatch):
    read = []

    def counted(text):
        read.append(text)
        return decode_pod(text)

    monkeypatch.setattr(pod_argument, "decode_pod", counted)
    names = ("twice", "twice", "other", "twice")

    asked = [
        decode_extender_args(encode({"Pod": {"metadata": {"name": name}}, "NodeNames": [str(turn)]}))
        for turn, name in enumerate(names)
    ]

    assert tuple(one.pod.name for one in asked) == names
    assert asked[0].pod is asked[1].pod
    assert len(read) == 3
