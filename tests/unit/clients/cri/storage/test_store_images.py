"""What an image is called and which layers it stands on."""

import msgspec
import pytest

from lamina.clients.cri.storage.store_documents import StoreConfig, StoreManifest
from lamina.clients.cri.storage.store_images import chain, names, stored_images
from lamina.clients.cri.storage.store_records import NAME_LIMIT, ImageRecord, LayerRecord
from lamina.model.digest import Digest
from lamina.model.image import Layer, Platform
from tests.unit.clients.cri.storage.written import sha

M, N, X = Digest(sha("manifest")), Digest(sha("other manifest")), Digest(sha("index"))
GZIP, ZSTD, DIFF = Digest(sha("gzip")), Digest(sha("zstd")), Digest(sha("diff"))
HERE = Platform("linux", "arm64", "v8")

BASE = LayerRecord("base", compressed_diff_digest=GZIP, compressed_size=10, diff_digest=DIFF, diff_size=30)
IMAGE = ImageRecord("image", names=("example.com/a:1",), layer="base", big_data_digests={"manifest": M})


def only(*arguments):
    (image,) = stored_images(*arguments)
    return image


@pytest.mark.parametrize(
    ("records", "ids"),
    [
        pytest.param([("a", ""), ("b", "a"), ("c", "b")], ["a", "b", "c"], id="bottom first"),
        pytest.param([("c", "b"), ("b", "a")], None, id="one is missing"),
        pytest.param([("a", "c"), ("b", "a"), ("c", "b")], None, id="a circle"),
        pytest.param([("c", "c")], None, id="its own parent"),
    ],
)
def test_layers_are_followed_from_the_top_to_the_ground(records, ids):
    found = chain("c", {one: LayerRecord(one, parent=parent) for one, parent in records})

    assert ids == (found if found is None else [layer.id for layer in found])


def test_an_image_that_stands_on_an_incomplete_layer_is_none():
    layers = {
        "base": LayerRecord("base", flags={"incomplete": msgspec.Raw(b"true")}),
        "top": LayerRecord("top", parent="base"),
    }

    assert chain("top", layers) is None


def test_an_image_may_have_no_layers_at_all():
    assert () == chain("", {})
    assert () == only(IMAGE, (), {M: StoreManifest(b"m", layers=())}, None).layers


def test_a_layer_has_the_digests_and_sizes_of_manifest_and_record():
    manifest = StoreManifest(b"m", "type", (Layer(GZIP, 10),))

    image = only(IMAGE, (BASE,), {M: manifest}, StoreConfig(HERE, (DIFF,)))

    assert (Layer(GZIP, 10, DIFF, 30),) == image.layers
    assert (M, 10, b"m", "type", HERE) == (image.digest, image.size, image.manifest, image.media_type, image.platform)


@pytest.mark.parametrize(
    ("record", "listed", "layers"),
    [
        pytest.param(BASE, (Layer(ZSTD, 8),), (Layer(ZSTD, 8, DIFF, 30),), id="it came in another compression before"),
        pytest.param(
            LayerRecord("base", diff_digest=DIFF, diff_size=30),
            (Layer(GZIP, 10),),
            (Layer(GZIP, 10, DIFF, 30),),
            id="the record does not tell the compressed digest",
        ),
        pytest.param(
            LayerRecord("base", diff_size=-1), (Layer(GZIP, 10),), (Layer(GZIP, 10, DIFF),), id="pulled in pieces"
        ),
        pytest.param(BASE, None, (Layer(GZIP, 10, DIFF, 30),), id="no manifest"),
        pytest.param(BASE, (Layer(ZSTD, 8),) * 2, (Layer(GZIP, 10, DIFF, 30),), id="a manifest of another image"),
        pytest.param(
            LayerRecord("base", diff_digest=DIFF, diff_size=30),
            None,
            (Layer(DIFF, 30, DIFF, 30),),
            id="built here, and no manifest",
        ),
    ],
)
def test_what_one_does_not_tell_another_does(record, listed, layers):
    described = None if listed is None else StoreManifest(b"m", layers=listed)

    assert layers == only(IMAGE, (record,), {M: described}, StoreConfig(HERE, (DIFF,))).layers


def test_a_manifest_that_does_not_fit_is_not_told():
    image = only(IMAGE, (BASE,), {M: StoreManifest(b"m", "type", (Layer(ZSTD, 8),) * 2)}, None)

    assert (b"", "") == (image.manifest, image.media_type)


def test_of_a_layer_that_nobody_can_name_the_image_tells_no_layers():
    assert () == only(IMAGE, (LayerRecord("base", diff_size=-1),), {M: None}, None).layers


def test_an_image_counts_a_layer_that_is_listed_twice_once():
    twice = StoreManifest(b"m", layers=(Layer(GZIP, 10), Layer(GZIP, 10)))

    assert 10 == only(IMAGE, (BASE, BASE), {M: twice}, None).size


def test_the_digest_of_an_index_is_a_name_and_no_image():
    image = only(IMAGE, (BASE,), {M: StoreManifest(b"m", layers=(Layer(GZIP, 10),)), X: StoreManifest()}, None)

    assert M == image.digest
    assert ("example.com/a:1", f"example.com/a@{M}", f"example.com/a@{X}") == image.names


def test_the_digest_it_was_pulled_by_is_a_name_though_its_document_was_not_kept():
    image = msgspec.structs.replace(IMAGE, digest=X)

    found = only(image, (BASE,), {M: StoreManifest(b"m", layers=(Layer(GZIP, 10),))}, None)

    assert (M, f"example.com/a@{X}") == (found.digest, found.names[-1])


def test_no_more_names_are_looked_at_than_anybody_needs():
    told = [f"example.com/{number}:1" for number in range(100)]

    assert 2 * NAME_LIMIT == len(names(told, (M,), (M,), tags=True))


def test_an_index_alone_is_nothing_to_start_from():
    """`podman manifest create` leaves such entries."""
    assert [] == list(stored_images(IMAGE, (), {M: StoreManifest()}, None))


def test_what_another_manifest_is_that_cannot_be_read_nobody_knows():
    images = list(stored_images(IMAGE, (BASE,), {M: None, X: None}, None))

    assert [M] == [image.digest for image in images]


def test_two_manifests_of_one_image_are_two_images_and_tags_go_to_the_one_in_use():
    manifests = {M: StoreManifest(b"m", layers=(Layer(GZIP, 10),)), N: StoreManifest(b"n", layers=(Layer(ZSTD, 8),))}

    first, second = stored_images(IMAGE, (BASE,), manifests, None)

    assert (M, ("example.com/a:1", f"example.com/a@{M}")) == (first.digest, first.names)
    assert (N, (f"example.com/a@{N}",)) == (second.digest, second.names)


def test_names_that_are_no_references_and_ids_are_left_out():
    told = ("a" * 64, "example.com/UPPER", "example.com/a:1")

    assert ("example.com/a:1", f"example.com/a@{M}") == names(told, (M,), (M,), tags=True)


def test_a_name_with_a_digest_stays_unless_it_is_that_of_another_image():
    told = (f"example.com/a@{N}", f"example.com/a@{X}")

    assert (f"example.com/a@{X}", f"example.com/a@{M}") == names(told, (M,), (M, N), tags=True)
