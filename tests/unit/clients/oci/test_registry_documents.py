"""Documents are what their digests say, and from an index one comes to the right images."""

import pytest

from lamina.clients.oci.image_selection import DEEPEST, MissingDocument, select_images
from lamina.clients.oci.registry_documents import (
    MOST_LISTED,
    CachedImage,
    CachedIndex,
    IndexedManifest,
    ManifestWithoutConfig,
    describe,
    read,
)
from lamina.model.digest import digest_of
from lamina.model.image import Image, Layer, Platform
from lamina.wire.errors import WireError
from tests.unit.clients.oci.registry_stub import INDEX, MANIFEST, a_config, a_digest, a_manifest, an_index, encode

CONFIG = a_config(2)
GOOD = a_manifest(CONFIG)


def reading(data, kind=MANIFEST):
    return read(data, digest_of(data), kind)


# ------------------------------------------------------------------------------------------------------------ reading


def test_a_manifest_and_its_configuration_make_an_image():
    manifest = reading(GOOD)
    assert isinstance(manifest, ManifestWithoutConfig)

    layers = tuple(Layer(a_digest(f"layer {n}"), 100 + n, a_digest(f"unpacked {n}")) for n in range(2))
    assert CachedImage(Image(digest_of(GOOD), layers, platform=Platform())) == describe(manifest, CONFIG)


def test_the_configuration_says_the_platform():
    config = a_config(2, "arm64", variant="v8")
    manifest = reading(a_manifest(config))
    assert isinstance(manifest, ManifestWithoutConfig)

    assert Platform("linux", "arm64", "v8") == describe(manifest, config).image.platform


def test_a_layer_that_is_not_compressed_says_how_much_it_unpacks_to():
    same = a_digest("layer 0")
    config = encode({"rootfs": {"diff_ids": [same]}})
    manifest = reading(a_manifest(config, 1))
    assert isinstance(manifest, ManifestWithoutConfig)

    assert (Layer(same, 100, same, 100),) == describe(manifest, config).image.layers


def test_an_index_lists_manifests_without_attestations():
    data = encode(
        {
            "manifests": [
                {"digest": a_digest("a"), "platform": {"os": "linux", "architecture": "amd64"}},
                {"digest": a_digest("b"), "platform": {"os": "unknown", "architecture": "unknown"}},
                {"digest": a_digest("c")},
            ]
        }
    )

    assert CachedIndex((IndexedManifest(a_digest("a"), Platform()), IndexedManifest(a_digest("c")))) == reading(
        data, INDEX
    )


BAD = [
    pytest.param(
        encode({"schemaVersion": 2, "layers": [], "manifests": []}), MANIFEST, "layers and manifests", id="both"
    ),
    pytest.param(a_manifest(CONFIG, mediaType=INDEX), MANIFEST, "layers and manifests", id="both, by its own word"),
    pytest.param(GOOD, INDEX, "the registry says", id="another type in the header"),
    pytest.param(an_index((GOOD, "amd64")), MANIFEST, "its Content-Type differs", id="an index, called a manifest"),
    pytest.param(a_manifest(CONFIG, schemaVersion=1), MANIFEST, "schema version 1", id="an old manifest"),
    pytest.param(a_manifest(CONFIG, 0), MANIFEST, "no layers", id="no layers"),
    pytest.param(a_manifest(CONFIG, 100_000), MANIFEST, "more than", id="10^5 layers"),
    pytest.param(a_manifest(CONFIG, 300), MANIFEST, "300 layers, the limit is", id="300 layers"),
    pytest.param(
        encode({"schemaVersion": 2, "layers": [{"digest": a_digest("a"), "size": -1}]}),
        MANIFEST,
        "is negative",
        id="-1",
    ),
    pytest.param(
        encode({"schemaVersion": 2, "layers": [{"digest": "sha256:../../etc", "size": 1}]}),
        MANIFEST,
        "not a digest",
        id="path",
    ),
    pytest.param(
        a_manifest(CONFIG, config={"digest": "md5:00"}), MANIFEST, "not a digest", id="the configuration's digest"
    ),
    pytest.param(a_manifest(CONFIG, artifactType="application/x"), MANIFEST, "not an image", id="an artifact"),
    pytest.param(encode({"manifests": [{"digest": "x"}]}), INDEX, "not a digest", id="an index of nonsense"),
    pytest.param(an_index(*[(GOOD, "amd64")] * (MOST_LISTED + 1)), INDEX, "more than 256", id="an endless index"),
    pytest.param(b"[" * 100_000, MANIFEST, "cannot read image", id="deep"),
    pytest.param(b"", MANIFEST, "cannot read image", id="empty"),
    pytest.param(b"\xff\xfe", MANIFEST, "cannot read image", id="no text"),
    pytest.param(b"null", MANIFEST, "cannot read image", id="null"),
]


@pytest.mark.parametrize(("data", "kind", "told"), BAD)
def test_what_is_no_usable_document_is_refused(data, kind, told):
    with pytest.raises(WireError, match=told):
        reading(data, kind)


def test_other_bytes_are_refused_before_they_are_read():
    with pytest.raises(WireError, match="the bytes have digest"):
        read(b"[" * 100_000, digest_of(GOOD), MANIFEST)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        pytest.param(a_config(3), "lists 3 layers and its manifest 2", id="another number of layers"),
        pytest.param(encode({"rootfs": {"diff_ids": ["x", "y"]}}), "not a digest", id="no digests"),
        pytest.param(b"{", "image configuration", id="no JSON"),
        pytest.param(encode({"rootfs": []}), "image configuration", id="another shape"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(config, told):
    manifest = reading(a_manifest(config))
    assert isinstance(manifest, ManifestWithoutConfig)

    with pytest.raises(WireError, match=told):
        describe(manifest, config)


def test_a_configuration_with_another_digest_is_refused():
    manifest = reading(GOOD)
    assert isinstance(manifest, ManifestWithoutConfig)

    with pytest.raises(WireError, match="the bytes have digest"):
        describe(manifest, a_config(2, "arm64"))


@pytest.mark.parametrize("size", [2**40 + 1, 2**63, 2**64, 2**70])
def test_a_claim_beyond_all_disks_counts_as_very_large(size):
    data = encode({"schemaVersion": 2, "layers": [{"digest": a_digest("a"), "size": size}]})
    manifest = reading(data)
    assert isinstance(manifest, ManifestWithoutConfig)

    assert 2**40 == manifest.image.layers[0].size


# ----------------------------------------------------------------------------------------------------------- choosing


def an_image(name, architecture="amd64", variant="", os="linux"):
    digest = digest_of(name.encode())
    return digest, CachedImage(Image(digest, (Layer(digest, 1),), platform=Platform(os, architecture, variant)))


def listing(name, *entries):
    return digest_of(name.encode()), CachedIndex(tuple(entries))


def chosen(root, platforms, *documents):
    """The digests that are chosen, by their names here."""
    shelf = dict(documents)
    found = select_images(digest_of(root.encode()), platforms, shelf.get)
    return found if isinstance(found, MissingDocument) else [image.digest for image in found]


def entry(name, architecture="amd64", variant="", os="linux"):
    return IndexedManifest(digest_of(name.encode()), Platform(os, architecture, variant))


AMD, ARM = an_image("amd"), an_image("arm", "arm64")
BOTH = listing("index", entry("amd"), entry("arm", "arm64", "v8"))


def test_each_platform_gets_its_manifest():
    both = [AMD[0], ARM[0]]

    assert [AMD[0]] == chosen("index", [Platform()], BOTH, AMD, ARM)
    assert [ARM[0]] == chosen("index", [Platform(architecture="arm64")], BOTH, AMD, ARM)
    assert both == chosen("index", [Platform(architecture="arm64"), Platform()], BOTH, AMD, ARM)
    assert both == chosen("index", [], BOTH, AMD, ARM)


def test_only_what_is_needed_is_asked_for():
    assert MissingDocument(BOTH[0]) == chosen("index", [Platform()])
    assert MissingDocument(AMD[0]) == chosen("index", [Platform()], BOTH)
    assert [AMD[0]] == chosen("index", [Platform()], BOTH, AMD)


def test_what_the_index_says_about_a_platform_counts_here_and_stays_with_the_index():
    shelf = dict([listing("liar", entry("amd", "arm64")), AMD])
    (image,) = select_images(digest_of(b"liar"), [Platform(architecture="arm64")], shelf.get)  # type: ignore[misc]

    assert Platform("linux", "arm64") == image.platform
    assert Platform() == shelf[AMD[0]].image.platform


@pytest.mark.parametrize(
    ("wanted", "best"),
    [
        pytest.param(Platform("linux", "arm", "v7"), "v7", id="exactly"),
        pytest.param(Platform("linux", "arm", ""), "v7", id="32-bit Arm is v7 unless it says otherwise"),
        pytest.param(Platform("linux", "arm", "v6"), "v6", id="an older one"),
        pytest.param(Platform("linux", "arm", "v8"), "v7", id="the newest that runs"),
    ],
)
def test_a_node_gets_the_newest_variant_it_can_run(wanted, best):
    index = listing("arms", *(entry(variant, "arm", variant) for variant in ("v5", "v6", "v7")))
    images = [an_image(variant, "arm", variant) for variant in ("v5", "v6", "v7")]

    assert [digest_of(best.encode())] == chosen("arms", [wanted], index, *images)


@pytest.mark.parametrize(
    "platform",
    [
        pytest.param(Platform("linux", "s390x"), id="another processor"),
        pytest.param(Platform("windows", "amd64"), id="another system"),
    ],
)
def test_nothing_for_any_platform_is_told(platform):
    with pytest.raises(WireError, match="it has no image for"):
        chosen("index", [platform], BOTH, AMD, ARM)


def test_an_image_without_an_index_is_what_it_is():
    assert [AMD[0]] == chosen("amd", [Platform("linux", "s390x")], AMD)


def test_entries_that_say_nothing_are_looked_into():
    quiet = listing("quiet", IndexedManifest(AMD[0]), IndexedManifest(ARM[0]))

    assert [AMD[0]] == chosen("quiet", [Platform()], quiet, AMD, ARM)


def test_indexes_lie_inside_each_other_only_so_deep():
    """With digests no loop can be made; a registry that is believed without them could."""
    shelf = dict([listing("loop", IndexedManifest(digest_of(b"loop")))])
    chain = dict([AMD, *(listing(f"{n}", IndexedManifest(digest_of(f"{n + 1}".encode()))) for n in range(DEEPEST - 1))])
    chain[digest_of(str(DEEPEST - 1).encode())] = CachedIndex((IndexedManifest(AMD[0], Platform()),))

    looked_at: list[str] = []

    def looking(digest):
        looked_at.append(digest)
        return shelf[digest]

    with pytest.raises(WireError, match="nested indexes"):
        select_images(digest_of(b"loop"), [Platform()], looking)
    assert DEEPEST + 1 == len(looked_at)
    assert [AMD[0]] == [image.digest for image in select_images(digest_of(b"0"), [Platform()], chain.get)]
