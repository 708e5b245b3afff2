"""Images made in memory are what tools of other people take them for."""

import gzip
import hashlib
import io
import json
import subprocess
import tarfile

import pytest
import zstandard

from testbed import made
from testbed.requests import Requests

pytestmark = pytest.mark.realtime

FILES = {"lib/b": b"b" * 5000, "lib/a": made.noise(1, 10_000)}
READERS = {
    "gzip": gzip.decompress,
    "zstd": lambda blob: zstandard.ZstdDecompressor().decompress(blob),
    "none": lambda blob: blob,
}


@pytest.mark.parametrize("compression", READERS)
def test_a_layer_tells_the_truth_about_itself(compression):
    layer = made.layer(FILES, compression)
    plain = READERS[compression](layer.blob)

    assert f"sha256:{hashlib.sha256(layer.blob).hexdigest()}" == layer.digest
    assert f"sha256:{hashlib.sha256(plain).hexdigest()}" == layer.diff_id
    assert (len(layer.blob), len(plain)) == (layer.size, layer.unpacked)
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        assert {member.name: tar.extractfile(member).read() for member in tar} == FILES


@pytest.mark.parametrize("compression", READERS)
def test_the_same_files_give_the_same_layer(compression):
    assert made.layer(FILES, compression) == made.layer(dict(reversed(FILES.items())), compression)


def test_a_layer_in_an_unknown_compression_is_refused():
    with pytest.raises(ValueError, match=r"^unknown compression 'lz4'; choose from gzip, zstd, none$"):
        made.layer(FILES, "lz4")


def test_noise_is_the_same_for_the_same_seed_and_does_not_compress():
    assert made.noise(7, 10_000) == made.noise(7, 10_000)
    assert made.noise(7, 10_000) != made.noise(8, 10_000)
    assert len(gzip.compress(made.noise(7, 10_000))) > 9_900


def test_an_image_names_its_layers_and_its_platform():
    layers = [made.layer({"a": b"a"}), made.layer({"b": b"b"}, "zstd")]
    image = made.image(layers, architecture="arm", variant="v7", labels={"team": "web"})
    manifest, config = json.loads(image.manifest), json.loads(image.config)

    assert [(each.media_type, each.digest, each.size) for each in layers] == [
        (one["mediaType"], one["digest"], one["size"]) for one in manifest["layers"]
    ]
    assert made.digest(image.config) == manifest["config"]["digest"]
    assert ("arm", "v7", "linux") == (config["architecture"], config["variant"], config["os"])
    assert [each.diff_id for each in layers] == config["rootfs"]["diff_ids"]
    assert {"team": "web"} == config["config"]["Labels"]


def test_an_image_may_be_in_the_words_of_docker():
    image = made.image([made.layer({"a": b"a"}), made.layer({"b": b"b"}, "none")], docker=True)
    manifest = json.loads(image.manifest)

    assert [
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.container.image.v1+json",
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
        "application/vnd.docker.image.rootfs.diff.tar",
    ] == [
        manifest["mediaType"],
        manifest["config"]["mediaType"],
        *(each["mediaType"] for each in manifest["layers"]),
    ]


def test_an_index_has_an_attestation_for_each_image_if_wanted():
    base = made.layer({"a": b"a"})
    images = [made.image([base], architecture="amd64"), made.image([base], architecture="arm64", variant="v8")]
    entries = json.loads(made.index(images, attestations=True).index)["manifests"]

    assert [("amd64", None), ("arm64", "v8"), ("unknown", None), ("unknown", None)] == [
        (entry["platform"]["architecture"], entry["platform"].get("variant")) for entry in entries
    ]
    assert [image.digest for image in images] == [
        entry["annotations"]["vnd.docker.reference.digest"] for entry in entries[2:]
    ]


@pytest.mark.testbed("registry")
def test_a_registry_takes_an_index_with_all_that_hangs_in_it(registry_server):
    base, app = made.layer({"a": b"a"}), made.layer({"b": b"b"}, "zstd")
    index = made.index([made.image([base, app]), made.image([app], architecture="s390x")], attestations=True)

    reference = made.push(registry_server.host, "made/both:1", index)

    requests = Requests(f"http://{registry_server.host}")
    found = requests.send("GET", "/v2/made/both/manifests/1", headers={"Accept": made.INDEX})
    for entry in found["manifests"]:
        requests.send("GET", f"/v2/made/both/manifests/{entry['digest']}", headers={"Accept": made.MANIFEST})
    requests.close()
    assert f"{registry_server.host}/made/both:1" == reference
    assert json.loads(index.index) == found
    assert ("GET", "/v2/made/both/manifests/1", 200) in registry_server.requests()


@pytest.mark.testbed("registry")
def test_a_layer_that_is_there_is_not_uploaded_twice(registry_server):
    base = made.layer({"a": made.noise(3, 1000)})
    made.push(registry_server.host, "made/shared:1", made.image([base]))
    before = len(registry_server.requests())

    made.push(registry_server.host, "made/shared:2", made.image([base], labels={"other": "config"}))

    uploads = [asked for asked in registry_server.requests()[before:] if "/blobs/uploads/" in asked.path]
    assert ["POST", "PUT"] == [asked.method for asked in uploads]


@pytest.mark.slow
@pytest.mark.needs("skopeo", root=True)
def test_skopeo_reads_a_layout_with_two_names(tmp_path):
    base = made.layer({"a": b"a"})
    images = {"one": made.image([base]), "two": made.image([base, made.layer({"b": b"b"}, "zstd")])}
    for name, image in images.items():
        made.write_layout(tmp_path / "layout", name, image)

    for name, image in images.items():
        words = ["skopeo", "inspect", "--raw", f"oci:{tmp_path / 'layout'}:{name}"]
        assert image.manifest == subprocess.run(words, capture_output=True, check=True).stdout.rstrip(b"\n")
