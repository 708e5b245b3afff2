"""What the store of blobs says besides the documents."""

import pytest

from lamina.clients.cri.containerd import content_store
from lamina.clients.cri.containerd.containerd_client import ContainerdClient
from lamina.clients.cri.containerd.content_store import StoredBlob
from lamina.clients.cri.containerd.image_documents import ContainerdImage
from lamina.model.digest import digest_of
from lamina.model.image import Layer, Platform
from tests.unit.clients.cri.containerd.fake_containerd import CONFIG, UNPACKED_BY


def an_image(name):
    layer = Layer(digest_of(f"{name} layer".encode()), 1, digest_of(b"diff"))
    return ContainerdImage(
        digest_of(name.encode()), "", b"", digest_of(b"config"), Platform(), (layer,), digest_of(b"diff")
    )


def records(*kept):
    """Records of images that keep their layers."""
    present = {}
    for image in kept:
        present[str(image.digest)] = StoredBlob(image.digest, 0.0, keeps_layers=True)
        present[str(image.layers[-1].digest)] = StoredBlob(image.layers[-1].digest, 0.0)
    return present


A, B, C = (an_image(name) for name in "abc")


@pytest.mark.parametrize(
    ("sample", "present", "expected"),
    [
        pytest.param([], {}, "prefix", id="nothing to see"),
        pytest.param([A], records(A), "set", id="kept"),
        pytest.param([A], {}, "prefix", id="gone"),
        pytest.param([A, B, C], records(A, B), "set", id="most are kept"),
        pytest.param([A, B], records(A), "prefix", id="half of them"),
        pytest.param(
            [A], {A.digest: StoredBlob(A.digest, 0.0, keeps_layers=True)}, "prefix", id="meant to be kept, but gone"
        ),
        pytest.param(
            [A, B],
            {**records(A), B.digest: StoredBlob(B.digest, 0.0, keeps_layers=True)},
            "set",
            id="one was unpacked from another's blobs, in another compression",
        ),
        pytest.param(
            [A],
            {A.digest: StoredBlob(A.digest, 0.0), A.layers[-1].digest: StoredBlob(A.layers[-1].digest, 0.0)},
            "prefix",
            id="there, but not meant to be kept",
        ),
    ],
)
def test_blobs_are_of_use_where_most_images_keep_theirs(sample, present, expected):
    assert expected == content_store.reuse(sample, present)


@pytest.fixture
async def asked(fake):
    calls = ContainerdClient(fake.socket, "k8s.io")
    yield calls
    await calls.close()


async def test_a_configuration_says_who_unpacked_it(fake, asked):
    config = fake.blob(b"{}", **{f"{UNPACKED_BY}zfs": "a", f"{UNPACKED_BY}overlayfs": "b"})
    fake.blob(b"another")

    survey = await content_store.survey(asked, ["overlayfs", "zfs"])
    assert {config: ("overlayfs", "zfs")} == survey.unpacked_by
    assert ({}, []) == (survey.present, survey.manifests)


async def test_manifests_come_newest_first_and_say_where_from(fake, asked):
    source = "containerd.io/distribution.source."
    old = fake.blob(b"old", **{CONFIG: "x"})
    new = fake.blob(b"new", **{CONFIG: "x", f"{source}b.example": "team/web,team/other", f"{source}c.example": "z"})
    fake.blobs[new].created = 5.0

    survey = await content_store.survey(asked, (), manifests=True)
    assert [StoredBlob(new, 5.0, f"b.example/team/web@{new}"), StoredBlob(old, 0.0)] == survey.manifests


async def test_a_snapshotter_with_a_strange_name_is_not_asked_for(fake, asked):
    await content_store.survey(asked, ['x",digest~=".*'])

    assert 0 == fake.asked["Content/List"]


async def test_a_question_has_an_end(fake, asked, monkeypatch):
    monkeypatch.setattr(content_store, "ASKED_LIMIT", 2)
    digests = sorted(fake.blob(bytes([number])) for number in range(3))

    assert digests[:2] == sorted((await content_store.survey(asked, (), digests)).present)
