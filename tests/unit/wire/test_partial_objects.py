"""Objects of which services need a few fields: read in full, in part, or refused in words of ours."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lamina.model.digest import digest_of
from lamina.wire.custom_resources.api_group import object_name
from lamina.wire.custom_resources.image_layers_ref import decode_image_layers_ref
from lamina.wire.custom_resources.node_layers_status import encode_node_layers, encode_owners
from lamina.wire.custom_resources.stored_node_layers import StoredNodeLayers, decode_stored_node_layers
from lamina.wire.errors import WireError
from lamina.wire.kube.meta import decode_count, decode_meta
from lamina.wire.kube.node_ready import decode_ready
from lamina.wire.kube.secret import decode_secret
from lamina.wire.kube.server_info import (
    decode_allowed,
    decode_creation_timestamp,
    decode_established,
    decode_validation_actions,
    decode_version,
)
from lamina.wire.node_metrics import NodeMetrics, decode_node_metrics_list
from lamina.wire.service_token import ClaimedNode, node_in

DECODERS: list[Callable[[bytes], Any]] = [
    decode_meta,
    decode_count,
    decode_ready,
    decode_version,
    decode_established,
    decode_validation_actions,
    decode_creation_timestamp,
    decode_allowed,
    decode_secret,
    decode_stored_node_layers,
    decode_node_metrics_list,
    decode_image_layers_ref,
]


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"[" * 100_000], ids=["nothing", "a list", "half", "very deep"])
def test_what_is_no_object_is_a_wire_error_and_nothing_else(decode, data):
    with pytest.raises(WireError):
        decode(data)


def encoded(said: Any) -> bytes:
    return json.dumps(said).encode()


@pytest.mark.parametrize(
    ("decode", "said", "expected"),
    [
        pytest.param(decode_count, {"items": [{}], "metadata": {"remainingItemCount": 4}}, 5, id="a first page"),
        pytest.param(decode_count, {"items": None}, 0, id="an empty list"),
        pytest.param(
            decode_ready, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, True, id="a ready node"
        ),
        pytest.param(decode_ready, {"status": {"conditions": None}}, False, id="a node that has said nothing"),
        pytest.param(
            decode_established,
            {"status": {"conditions": [{"type": "Established", "status": "False"}]}},
            False,
            id="a definition that is not established",
        ),
        pytest.param(decode_validation_actions, {"spec": {"validationActions": ["Deny"]}}, ("Deny",), id="a binding"),
        pytest.param(decode_creation_timestamp, {"metadata": {}}, "", id="no time"),
        pytest.param(decode_allowed, {"status": {"allowed": True}}, True, id="a review"),
        pytest.param(decode_stored_node_layers, {}, StoredNodeLayers(), id="an object that is new"),
        pytest.param(
            decode_stored_node_layers,
            {"metadata": {"ownerReferences": [{"uid": "u"}]}, "status": {"sequence": -3, "nodeUID": "u"}},
            StoredNodeLayers(("u",)),
            id="a node that has not reported",
        ),
    ],
)
def test_fields_that_are_needed_are_read(decode, said, expected):
    assert expected == decode(encoded(said))


@pytest.mark.parametrize("missing", ["name", "uid", "resourceVersion"])
def test_an_object_that_does_not_say_which_one_it_is_is_refused(missing):
    metadata = {"name": "n", "uid": "u", "resourceVersion": "1"}
    del metadata[missing]

    with pytest.raises(WireError):
        decode_image_layers_ref(encoded({"metadata": metadata}))


def test_an_object_whose_manifest_cannot_be_read_still_has_an_identity():
    name = object_name(digest_of(b"m"))
    metadata = {"name": name, "uid": "u", "resourceVersion": "1"}
    found = decode_image_layers_ref(encoded({"metadata": metadata, "spec": {"manifest": "***"}}))

    assert (name, "u", "1", None) == (found.name, found.uid, found.version, found.digest)


def test_no_error_quotes_a_secret():
    with pytest.raises(WireError) as caught:
        decode_secret(encoded({"type": "t", "data": {"k": "not base64: hunter2"}}))

    assert "hunter2" not in f"{caught.value} {caught.value.__cause__}"


def test_the_owners_of_a_patch_are_those_of_a_new_object():
    made, patch = (json.loads(encode("n1", "u1")) for encode in (encode_node_layers, encode_owners))

    assert {"metadata": {"ownerReferences": made["metadata"]["ownerReferences"]}} == patch


def test_one_node_whose_metrics_cannot_be_read_does_not_take_the_others_with_it():
    good = {
        "metadata": {"name": "n1"},
        "timestamp": "1970-01-01T00:01:00Z",
        "window": "30s",
        "usage": {"cpu": "250m", "memory": "1Ki"},
    }
    found = decode_node_metrics_list(encoded({"items": [{}, good, good | {"metadata": {}}]}))

    assert [None, NodeMetrics("n1", 60.0, 30.0, 250, 1024), None] == list(found)


def test_a_header_without_a_token_names_no_node():
    assert ClaimedNode() == node_in("Basic xyz")
