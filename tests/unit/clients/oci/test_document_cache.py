"""What was learnt is kept in bounded space."""

from lamina.clients.oci.document_cache import DocumentCache, ExpiringCache
from lamina.clients.oci.registry_documents import CachedImage, CachedIndex, IndexedManifest
from lamina.model.digest import digest_of
from lamina.model.image import Image, Layer, Platform


def a_document(number, layers=3):
    digest = digest_of(str(number).encode())
    listed = tuple(
        Layer(digest_of(f"{number} {n}".encode()), n, digest_of(f"d{n}".encode()), None) for n in range(layers)
    )
    return digest, CachedImage(Image(digest, listed, platform=Platform("linux", "arm64", "v8")))


def test_a_document_comes_back_as_it_was():
    documents = DocumentCache()
    digest, image = a_document(1)
    listing = CachedIndex((IndexedManifest(digest), IndexedManifest(digest, Platform())))
    documents.put(digest, image)
    documents.put(digest_of(b"index"), listing)

    assert image == documents.get(digest)
    assert listing == documents.get(digest_of(b"index"))
    assert documents.get(digest_of(b"other")) is None


def test_the_longest_unused_go_when_there_are_too_many():
    documents = DocumentCache(most=3)
    digests = [a_document(number)[0] for number in range(4)]
    for number in range(3):
        documents.put(*a_document(number))
    documents.get(digests[0])
    documents.put(*a_document(3))

    assert [True, False, True, True] == [documents.get(digest) is not None for digest in digests]


def test_bytes_are_bounded_and_counted_exactly():
    documents = DocumentCache(most_bytes=10_000)
    for number in range(200):
        documents.put(*a_document(number, layers=number % 30))
        assert documents.size <= 10_000
    sizes = sum(len(data) + 256 for data in documents._entries.values())

    assert sizes == documents.size
    assert 0 < len(documents) < 200


def test_a_document_that_is_larger_than_everything_is_not_kept():
    documents = DocumentCache(most_bytes=100)
    documents.put(*a_document(1))

    assert (0, 0) == (len(documents), documents.size)


def test_what_fades_is_known_until_its_time():
    fading: ExpiringCache[str, str] = ExpiringCache(most=2)
    fading.put("a", "x", 10.0)

    assert ("x", 1.0) == fading.get("a", 9.0)
    assert fading.get("a", 10.0) is None
    assert ("x", None) == (fading.last("a"), fading.last("b"))


def test_only_so_much_fades():
    fading: ExpiringCache[int, str] = ExpiringCache(most=2)
    for number in range(5):
        fading.put(number, "x", 10.0)

    assert 2 == len(fading)
    assert fading.get(0, 0.0) is None
