"""Sources of images are told apart by what is in them."""

import gzip
import tarfile

import pytest

from lamina.model.digest import digest_of
from lamina.model.errors import InputError
from lamina.model.image import Image, Layer
from lamina.wire.catalog_file import encode_catalog
from lamina.wire.image_sources import kind_of, read_sources
from tests.unit.wire.layouts import Layout

CATALOG = encode_catalog([Image(digest_of(b"web"), (Layer(digest_of(b"base"), 1),), ("web:1",))], "c")


@pytest.fixture
def put(tmp_path):
    """Write a file and return its path; the name says nothing."""

    def put(data: bytes):
        (tmp_path / "source").write_bytes(data)
        return tmp_path / "source"

    return put


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        pytest.param(CATALOG, "catalog", id="a catalog"),
        pytest.param(gzip.compress(CATALOG), "catalog", id="a compressed catalog"),
        pytest.param(b'{"format":"lamina-catalog","version":9}\n', "catalog", id="one of a later version"),
        pytest.param(b'{"schemaVersion":2}', "document", id="a manifest"),
        pytest.param(b'{\n  "schemaVersion": 2\n}\n', "document", id="a manifest on several lines"),
        pytest.param(b"", "document", id="nothing"),
    ],
)
def test_a_file_is_what_it_begins_with(put, data, kind):
    assert kind == kind_of(put(data))


def test_a_folder_is_a_layout_and_a_tar_archive_the_same_in_one_file(tmp_path):
    layout = Layout()
    path = layout.saved(tmp_path / "saved.tar", layout.manifest("web:1"))

    assert ("layout", "archive") == (kind_of(tmp_path / "saved"), kind_of(path))


def test_a_compressed_archive_is_told(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(tmp_path, arcname="x", recursive=False)

    with pytest.raises(InputError, match="is compressed and is not a catalog; decompress it first"):
        kind_of(tmp_path / "a.tar.gz")


def test_a_source_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match=r"nowhere: cannot be read \(No such file or directory\)"):
        list(read_sources([tmp_path / "nowhere"]))


def test_all_kinds_are_read_and_manifests_together_at_the_end(tmp_path, put):
    layout = Layout()
    entry = layout.manifest()
    archive = layout.saved(tmp_path / "saved.tar", {**entry, "annotations": {"io.containerd.image.name": "web:2"}})
    manifest = tmp_path / "m.json"
    manifest.write_bytes(layout.files[f"blobs/sha256/{entry['digest'][7:]}"])
    sources = [manifest, archive, tmp_path / "saved", put(CATALOG)]

    found = list(read_sources(sources, name="web:3"))

    assert [*sources, None] == [path for path, _ in found]
    assert [[], ["web:2"], ["web:2"], ["web:1"], ["web:3"]] == [
        [name for image in one.images for name in image.names] for _, one in found
    ]
