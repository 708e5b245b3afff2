"""images.json and layers.json."""

import pytest

from lamina.clients.cri.storage.store_records import (
    NAME_LIMIT,
    ImageRecord,
    LayerRecord,
    decode_images,
    decode_layers,
    document_file,
)
from lamina.wire.oci.manifest import SIZE_LIMIT
from tests.unit.clients.cri.storage.written import encode, sha

A, B, C = sha("a"), sha("b"), sha("c")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        pytest.param("manifest", "manifest", id="plain"),
        pytest.param("a.0", "a.0", id="digit and dot"),
        pytest.param("manifest-sha256:0a", "=bWFuaWZlc3Qtc2hhMjU2OjBh", id="dash and colon"),
        pytest.param("../x", "=Li4veA==", id="a way out"),
    ],
)
def test_the_file_of_a_document_is_named_as_containers_storage_does(name, file):
    assert file == document_file(name)


@pytest.mark.parametrize("text", [b"[]", b"null"])
def test_a_list_without_entries_is_a_list(text):
    assert ([], []) == (decode_images(text), decode_layers(text))


def test_fields_that_nobody_needs_are_not_looked_at():
    layer = {"id": "x", "uidset": [0], "toc-digest": A, "metadata": {"odd": None}}

    assert [LayerRecord("x")] == decode_layers(encode([layer]))


@pytest.mark.parametrize(
    ("kept", "manifests"),
    [
        pytest.param({}, (), id="none yet: it is being recorded"),
        pytest.param({"manifest": A, f"manifest-{A}": A}, (A,), id="one"),
        pytest.param({f"manifest-{A}": A, f"manifest-{B}": B, "manifest": B}, (B, A), id="the one in use comes first"),
        pytest.param({"manifest": "sha256:short", A: A, f"signature-{B}": C}, (), id="nothing that is one"),
    ],
)
def test_the_manifests_of_an_image_are_found_by_their_names(kept, manifests):
    assert manifests == ImageRecord("x", big_data_digests=kept).manifests


@pytest.mark.parametrize(
    ("name", "usable"),
    [
        pytest.param("0a" * 32, True, id="digest"),
        pytest.param("", False, id="empty"),
        pytest.param("..", False, id="the folder above"),
        pytest.param("a/b", False, id="two levels"),
        pytest.param("a\0b", False, id="zero byte"),
        pytest.param("a" * 200, False, id="too long"),
    ],
)
def test_an_id_that_is_no_name_of_a_folder_is_not_used(name, usable):
    assert usable == ImageRecord(name).usable


@pytest.mark.parametrize(
    ("flags", "complete"),
    [
        pytest.param({}, True, id="no flags"),
        pytest.param({"incomplete": True}, False, id="incomplete"),
        pytest.param({"incomplete": False}, True, id="no longer incomplete"),
        pytest.param({"other": True}, True, id="another flag"),
    ],
)
def test_a_layer_is_complete_unless_it_is_flagged(flags, complete):
    (layer,) = decode_layers(encode([{"id": "x", "flags": flags}]))

    assert complete == layer.complete


@pytest.mark.parametrize(
    ("told", "compressed", "unpacked"),
    [
        pytest.param({"size": 7, "diff": 9}, (A, 7), 9, id="both"),
        pytest.param({"size": -1, "diff": -1}, None, None, id="negative sizes are none"),
        pytest.param({"size": 2**70, "diff": 2**62}, (A, SIZE_LIMIT), SIZE_LIMIT, id="too large to be true"),
    ],
)
def test_sizes_are_claims(told, compressed, unpacked):
    layer = LayerRecord(
        "x", compressed_diff_digest=A, compressed_size=told["size"], diff_digest=B, diff_size=told["diff"]
    )

    assert compressed == layer.compressed
    assert unpacked == layer.unpacked


def test_an_unpacked_size_is_told_without_a_digest_too():
    """A partial pull may know how large a layer is, though nobody has seen it whole."""
    assert 9 == LayerRecord("x", diff_size=9).unpacked
    assert 0 == LayerRecord("x", diff_digest=A).unpacked


def test_no_more_manifests_are_looked_at_than_anybody_needs():
    kept = {f"manifest-{number}": sha(f"{number}") for number in range(100)}

    assert NAME_LIMIT == len(ImageRecord("x", big_data_digests=kept).manifests)


def test_a_layer_that_was_put_together_from_pieces_has_neither_digest():
    """A partial pull checks the table of contents and not the whole, so that nobody ever saw the whole."""
    layer = LayerRecord("x", diff_size=-1)

    assert (None, None, None) == (layer.compressed, layer.diff_id, layer.unpacked)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b'[{"id":"x"', id="half"),
        pytest.param(b'[{"id":"x","diff-size":"7"}]', id="a text for a number"),
        pytest.param(b'[{"id":"\xff"}]', id="not UTF-8"),
        pytest.param(b'{"id":"x"}', id="no list"),
        pytest.param(b'[{"names":[]}]', id="no id"),
    ],
)
def test_what_is_no_list_of_records_is_said_to_be_none(text):
    with pytest.raises(ValueError, match=r"\w"):
        decode_layers(text)
