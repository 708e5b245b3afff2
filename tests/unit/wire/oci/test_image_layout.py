"""OCI image layouts: every image of every platform, nothing that is no image, no byte believed unchecked."""

import json
import tarfile

import pytest

from lamina.model.digest import digest_of
from lamina.model.errors import InputError
from lamina.model.image import Image, Layer, Platform
from lamina.wire.oci import image_layout
from lamina.wire.oci.blob_sources import LayoutArchive, LayoutFolder, ManifestFiles
from lamina.wire.oci.image_layout import LayoutContents, read_documents, read_layout
from lamina.wire.oci.manifest import DOCKER_MANIFEST, MANIFEST_LIMIT
from tests.unit.wire.layouts import APP, BASE, NAME, REF, Layout

ARM = Platform("linux", "arm64", "v8")
ON_ARM = {"platform": {"os": "linux", "architecture": "arm64", "variant": "v8"}}
UNPACKED = digest_of(b"unpacked")


@pytest.fixture
def layout():
    return Layout()


def read(path, **options) -> LayoutContents:
    if path.suffix != ".tar":
        return read_layout(LayoutFolder(path), **options)
    with LayoutArchive(path) as archive:
        return read_layout(archive, **options)


def problems(found: LayoutContents) -> list[str]:
    return [mistake.message for mistake in found.mistakes]


@pytest.mark.parametrize("place", ["saved", "saved.tar"])
def test_an_image_is_read_with_name_platform_and_diff_ids(layout, tmp_path, place):
    """The base is stored as it is, so its unpacked size is known."""
    entry = layout.manifest("web:1")
    found = read(layout.saved(tmp_path / place, entry))

    assert [] == found.mistakes
    assert [
        Image(entry["digest"], (Layer(BASE, 100, BASE, 100), Layer(APP, 20, UNPACKED)), ("web:1",), Platform())
    ] == found.images


def test_an_index_inside_the_index_has_an_image_for_each_platform_under_one_name(layout, tmp_path):
    inner = layout.index(
        layout.manifest(configured={}, entry={"platform": {"os": "linux", "architecture": "amd64"}}),
        layout.manifest(configured={"os": "x"}, entry=ON_ARM),
        name="web:1",
    )
    found = read(layout.saved(tmp_path / "saved", inner))

    assert [(("web:1",), Platform()), (("web:1",), ARM)] == [(image.names, image.platform) for image in found.images]


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"platform": {"os": "unknown", "architecture": "unknown"}}, id="of no platform"),
        pytest.param({"annotations": {"vnd.docker.reference.type": "attestation-manifest"}}, id="annotated"),
    ],
)
def test_attestations_are_left_out_and_counted(layout, tmp_path, entry):
    inner = layout.index(layout.manifest(), layout.manifest(configured={"os": "y"}, entry=entry), name="web:1")
    found = read(layout.saved(tmp_path / "saved", inner))

    assert (1, 1, []) == (len(found.images), found.other, found.mistakes)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"artifactType": "application/vnd.example+json"}, id="an artifact"),
        pytest.param(
            {"config": {"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": BASE, "size": 1}},
            id="a chart",
        ),
    ],
)
def test_what_is_no_image_is_left_out_and_counted(layout, tmp_path, fields):
    found = read(layout.saved(tmp_path / "saved", layout.manifest("web:1"), layout.manifest("x:1", **fields)))

    assert (1, 1, []) == (len(found.images), found.other, found.mistakes)


def test_platforms_that_were_not_saved_are_counted(layout, tmp_path):
    """`docker save` keeps the whole index and only the blobs that were pulled."""
    other = layout.manifest(configured={"os": "z"}, entry=ON_ARM)
    inner = layout.index(layout.manifest(), other, name="web:1")
    layout.remove(other)
    found = read(layout.saved(tmp_path / "saved", inner))

    assert (1, 1, []) == (len(found.images), found.absent, found.mistakes)


@pytest.mark.parametrize(
    ("annotations", "option", "names"),
    [
        pytest.param({NAME: "docker.io/library/web:1", REF: "1"}, "", ("docker.io/library/web:1",), id="docker"),
        pytest.param({REF: "localhost/web:1"}, "", ("localhost/web:1",), id="podman"),
        pytest.param({REF: "1"}, "web:1", ("web:1",), id="a tag names nothing"),
        pytest.param({}, "web:1", ("web:1",), id="no name"),
        pytest.param({NAME: "web:1"}, "other:1", ("web:1",), id="a name counts more than the option"),
        pytest.param({NAME: "Web:1"}, "web:1", ("web:1",), id="a name that is none"),
    ],
)
def test_names_come_from_annotations_or_from_outside(layout, tmp_path, annotations, option, names):
    entry = {**layout.manifest(), "annotations": annotations}
    found = read(layout.saved(tmp_path / "saved", entry), name=option)

    assert [names] == [image.names for image in found.images]


def test_the_platform_may_have_to_be_said(layout, tmp_path):
    path = layout.saved(tmp_path / "saved", layout.manifest("web:1", configured={}))

    assert [Platform()] == [image.platform for image in read(path).images]
    assert [ARM] == [image.platform for image in read(path, platform=ARM).images]


def test_an_image_without_a_name_is_told(layout, tmp_path):
    entry = layout.manifest()
    found = read(layout.saved(tmp_path / "saved", entry))

    assert [f"cannot read image {entry['digest']}: it has no name; pass one with --name"] == problems(found)


def test_two_images_cannot_get_the_same_name_from_outside(layout, tmp_path):
    entries = [layout.manifest(), layout.manifest(annotations={"a": "b"})]
    found = read(layout.saved(tmp_path / "saved", *entries), name="web:1")

    assert [
        f"cannot read image {entries[1]['digest']}: a second image for linux/amd64 without a name; add them one by one"
    ] == problems(found)


@pytest.mark.parametrize("place", ["saved", "saved.tar"])
@pytest.mark.parametrize("which", ["manifest", "configuration"])
def test_bytes_that_are_not_what_their_digest_says_are_refused(layout, tmp_path, place, which):
    entry = layout.manifest("web:1")
    blobs = sorted(name for name in layout.files if name.startswith("blobs"))
    name = next(name for name in blobs if (entry["digest"][7:] in name) == (which == "manifest"))
    layout.files[name] += b" "
    found = read(layout.saved(tmp_path / place, entry))

    assert [] == found.images
    assert [f"cannot read blob sha256:{name[13:]}: the bytes have digest "] == [
        problem.partition("digest ")[0] + "digest " for problem in problems(found)
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"layers": []}, "it has no layers, so it is never pulled", id="no layers"),
        pytest.param({"schemaVersion": 1}, "schema version 1 is not 2", id="the old schema"),
        pytest.param({"manifests": []}, "it lists layers and manifests", id="readable in two ways"),
        pytest.param({"mediaType": "text/html"}, "text/html is not an image manifest", id="a web page"),
        pytest.param({"config": {"digest": "x"}}, "'x' is not a digest", id="no configuration"),
        pytest.param(
            {"layers": [{"digest": BASE, "size": 100}]},
            "its configuration lists 2 layers and its manifest 1; build it again",
            id="more diff ids than layers",
        ),
    ],
)
def test_what_is_wrong_with_one_image_is_told_beside_the_others(layout, tmp_path, fields, words):
    entries = [layout.manifest("bad:1", **fields), layout.manifest("web:1", mediaType=DOCKER_MANIFEST)]
    found = read(layout.saved(tmp_path / "saved", *entries))

    assert [("web:1",)] == [image.names for image in found.images]
    assert words in problems(found)[0]
    assert 1 == len(found.mistakes)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        pytest.param({"os": 1}, "cannot read image configuration", id="another shape"),
        pytest.param({"rootfs": {"diff_ids": ["x", "y"]}}, "'x' is not a digest", id="a diff id that is none"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_told(layout, tmp_path, config, words):
    found = read(layout.saved(tmp_path / "saved", layout.manifest("web:1", configured=config)))

    assert words in problems(found)[0]


def test_indexes_are_followed_only_so_deep(layout, tmp_path):
    entry = layout.manifest("web:1")
    for _ in range(image_layout.DEEPEST + 1):
        entry = layout.index(entry)
    found = read(layout.saved(tmp_path / "saved", entry))

    assert [] == found.images
    assert "indexes are nested deeper than 8 levels" in problems(found)[0]


def test_an_index_that_multiplies_is_given_up(layout, tmp_path, monkeypatch):
    """Ten times the same index, ten times in the next, and so on."""
    monkeypatch.setattr(image_layout, "MOST_MANIFESTS", 500)
    entry = layout.manifest("web:1")
    for _ in range(4):
        entry = layout.index(*[entry] * 10)

    with pytest.raises(InputError, match="lists more than 500 manifests; split it"):
        read(layout.saved(tmp_path / "saved", entry))


@pytest.mark.parametrize("place", ["saved", "saved.tar"])
def test_what_is_no_layout_is_told(layout, tmp_path, place):
    layout.saved(tmp_path / "saved")
    (tmp_path / "saved" / "index.json").unlink()
    path = tmp_path / place
    if place.endswith(".tar"):
        del layout.files["oci-layout"]
        path = old_archive(tmp_path / place)

    with pytest.raises(InputError, match=r"is not an OCI image layout, it has no index\.json; save the image again"):
        read(path)


def old_archive(path):
    """What `docker save` wrote before it knew of layouts."""
    (path.parent / "manifest.json").write_text("[]", encoding="utf-8")
    with tarfile.open(path, "w") as archive:
        archive.add(path.parent / "manifest.json", arcname="manifest.json")
    return path


@pytest.mark.parametrize(
    ("index", "words"),
    [
        pytest.param(b"{", "cannot read image index or manifest index.json: Input data was truncated", id="no JSON"),
        pytest.param(b"[" * 100_000, "cannot read image index or manifest index.json: ", id="deep lists"),
        pytest.param(b'{"manifests":[{}]}', "cannot read image index or manifest index.json: Object miss", id="empty"),
        pytest.param(b'{"manifests":[{"digest":"../x"}]}', "'../x' is not a digest", id="a way out"),
        pytest.param(b'{"manifests":[]}', "has no image in it; save the image again", id="nothing"),
        pytest.param(
            b'{"manifests":[{"digest":"%s"}]}' % BASE.encode(),
            "lists 1 manifests and has none of them; save the image again",
            id="nothing saved",
        ),
    ],
)
def test_an_index_that_leads_nowhere_is_told(layout, tmp_path, index, words):
    path = layout.saved(tmp_path / "saved")
    (path / "index.json").write_bytes(index)

    assert problems(read(path))[0].startswith(words)


def test_a_document_that_is_too_large_is_not_read(layout, tmp_path):
    path = layout.saved(tmp_path / "saved.tar", layout.manifest("web:1"))
    with (tmp_path / "saved" / "index.json").open("wb") as file:
        file.truncate(MANIFEST_LIMIT + 1)
    del layout.files["index.json"]
    with tarfile.open(path, "w") as archive:
        archive.add(tmp_path / "saved", arcname=".")

    for place in (path, tmp_path / "saved"):
        with pytest.raises(InputError, match="bytes"):
            read(place)


def test_an_archive_that_was_cut_short_is_told(layout, tmp_path):
    path = layout.saved(tmp_path / "saved.tar", layout.manifest("web:1"))
    path.write_bytes(path.read_bytes()[:700])

    with pytest.raises(InputError, match="is damaged or not a tar archive"):
        read(path)


def test_an_archive_of_too_many_files_is_not_listed(layout, tmp_path, monkeypatch):
    monkeypatch.setattr("lamina.wire.oci.blob_sources.MOST_MEMBERS", 3)
    path = layout.saved(tmp_path / "saved.tar", layout.manifest("web:1"))

    with pytest.raises(InputError, match="has more than 3 files; check that it is an image"):
        read(path)


# ------------------------------------------------------------------------------------ manifests that were saved as files


@pytest.fixture
def save(layout, tmp_path):
    """Save documents of the layout as files m0.json, m1.json and so on."""

    def save(*entries) -> ManifestFiles:
        for number, entry in enumerate(entries):
            (tmp_path / f"m{number}.json").write_bytes(layout.files[f"blobs/sha256/{entry['digest'][7:]}"])
        return ManifestFiles(tmp_path / f"m{number}.json" for number in range(len(entries)))

    return save


def test_a_manifest_is_an_image_by_the_name_and_platform_one_says(layout, save):
    entry = layout.manifest()
    found = read_documents(save(entry), "web:1", ARM)

    assert [Image(entry["digest"], (Layer(BASE, 100), Layer(APP, 20)), ("web:1",), ARM)] == found.images


def test_an_index_says_for_which_platforms_the_manifests_beside_it_are(layout, save):
    one, other, third = layout.manifest(), layout.manifest(configured={"os": "x"}, entry=ON_ARM), layout.manifest("n:1")
    index = layout.index(one, other, {**third, "digest": APP})
    found = read_documents(save(one, index, other), "web:1")

    assert [Platform(), ARM] == [image.platform for image in found.images]
    assert (1, []) == (found.absent, found.mistakes)


def test_an_index_alone_is_told(layout, save, tmp_path):
    found = read_documents(save(layout.index({"digest": BASE}, {"digest": APP})), "web:1")

    assert [f"{tmp_path}/m0.json"] == [mistake.source for mistake in found.mistakes]
    assert problems(found)[0].startswith("is an index of 2 manifests and has no layers itself; name the files")


@pytest.mark.parametrize(
    ("data", "name", "words"),
    [
        pytest.param(b"nginx", "web:1", "m0.json: JSON is malformed", id="no JSON"),
        pytest.param(b"{}", "web:1", "schema version 0 is not 2", id="another document"),
        pytest.param(b'{"schemaVersion":2,"layers":[]}', "", "it has no name; pass one with --name", id="no name"),
        pytest.param(
            json.dumps({"schemaVersion": 2, "layers": [{"digest": BASE, "size": 1}]}).encode(),
            f"web@{APP}",
            f"none of the files has the digest {APP}; save the manifest as it is",
            id="not what was asked for",
        ),
    ],
)
def test_a_file_that_is_no_manifest_is_told(tmp_path, data, name, words):
    (tmp_path / "m0.json").write_bytes(data)
    found = read_documents(ManifestFiles([tmp_path / "m0.json"]), name)

    assert words in "\n".join(map(str, found.mistakes))
