"""Namespaces: a name and what holds for the pods in it."""

import json

import pytest

from lamina.wire.errors import WireError
from lamina.wire.kube.namespace import decode_namespace


def test_a_namespace_has_a_name_and_annotations():
    found = decode_namespace(
        json.dumps(
            {"kind": "Namespace", "metadata": {"name": "shop", "annotations": {"lamina.dev/weight": "2"}}}
        ).encode()
    )

    assert ("shop", {"lamina.dev/weight": "2"}) == (found.name, found.annotations)


@pytest.mark.parametrize(
    "data", [b'{"metadata": {"name": "shop"}}', b'{"kind": null, "metadata": {"name": "shop", "annotations": null}}']
)
def test_a_namespace_may_have_no_annotations(data):
    assert ("shop", {}) == (decode_namespace(data).name, decode_namespace(data).annotations)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", "check that a Kubernetes API server sent it", id="nothing"),
        pytest.param(b"null", "Expected `object`", id="null"),
        pytest.param(b'{"kind": "Pod"}', "this is a Pod; ask for namespaces", id="a pod"),
        pytest.param(json.dumps({"kind": "K" * 5000}).encode(), "this is a KKK", id="a long kind"),
        pytest.param(b'{"metadata": {"name": 1}}', "Expected `str", id="a number for a name"),
        pytest.param(b'{"metadata": {"annotations": {"a": 1}}}', "Expected `str", id="a number in an annotation"),
        pytest.param(b'{"metadata":' * 100_000, "cannot read Namespace", id="deep"),
    ],
)
def test_what_is_no_namespace_is_refused_in_one_line(data, words):
    with pytest.raises(WireError, match=words) as caught:
        decode_namespace(data)

    assert 1 == len(str(caught.value).splitlines())
    assert 400 > len(str(caught.value))
