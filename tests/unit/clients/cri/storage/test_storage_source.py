"""A look at a store on disk, whole, broken, hostile, or being written."""

import asyncio
import contextlib
import os
import threading
from pathlib import Path

import pytest

from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.clients.cri.storage import storage_source, store_documents, stores
from lamina.clients.cri.storage.storage_source import StorageSource
from lamina.model.image import Layer, Platform
from lamina.model.layer_report import NodeRuntime
from tests.unit.clients.cri.storage.written import Disk, Written, encode, manifest_of, put, sha

BASE, APP, OTHER = Written("base", 100, 300), Written("app", 20, 50, "zstd"), Written("other", 5, 40, "none")


@pytest.fixture
def disk(tmp_path):
    return Disk(tmp_path)


@pytest.fixture
def at_once(monkeypatch):
    """What never comes to rest is given up at once."""
    monkeypatch.setattr(storage_source, "PAUSES", ())


def as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def look(root: Path, *additional: Path):
    return asyncio.run(StorageSource(root, additional=additional).look())


def test_a_look_tells_everything(disk):
    app = disk.pull("example.com/app:1", [BASE, APP], "arm64", by_index=True)
    other = disk.pull("example.com/other:1", [BASE, OTHER])
    disk.save()

    found = look(disk.root)

    index = disk.images[0]["digest"]
    layers = {
        app: (Layer(BASE.digest, 100, BASE.diff_id, 300), Layer(APP.digest, 20, APP.diff_id, 50)),
        other: (Layer(BASE.digest, 100, BASE.diff_id, 300), Layer(OTHER.diff_id, 40, OTHER.diff_id, 40)),
    }
    names = {
        app: ("example.com/app:1", f"example.com/app@{app}", f"example.com/app@{index}"),
        other: ("example.com/other:1", f"example.com/other@{other}"),
    }
    platforms = {app: Platform("linux", "arm64"), other: Platform("linux", "amd64")}
    assert (NodeRuntime("cri-o"), "set") == (found.runtime, found.reuse)
    assert sorted([app, other]) == [image.digest for image in found.images]
    assert layers == {image.digest: image.layers for image in found.images}
    assert names == {image.digest: image.names for image in found.images}
    assert platforms == {image.digest: image.platform for image in found.images}
    assert {app: 120, other: 140} == {image.digest: image.size for image in found.images}
    assert all(sha(image.manifest) == image.digest for image in found.images)
    assert 0 < found.disk_free < found.disk


def test_the_disk_is_that_of_the_images(disk, monkeypatch):
    """The agent's container has mounts of the host only below the root of the store."""
    disk.save()
    room = {disk.images_folder: os.statvfs_result((1, 4, 100, 50, 25, *[0] * 6))}
    monkeypatch.setattr(os, "statvfs", room.__getitem__)

    found = look(disk.root)

    assert (400, 100) == (found.disk, found.disk_free)


def test_other_drivers_are_found(tmp_path):
    disk = Disk(tmp_path, "vfs")
    digest = disk.pull("example.com/app:1", [BASE])
    disk.save()

    assert [digest] == [image.digest for image in look(tmp_path).images]


def test_a_store_that_has_never_had_an_image_is_empty(disk):
    disk.images_folder.mkdir()
    disk.layers_folder.mkdir()

    assert () == look(disk.root).images


def test_layers_and_images_of_additional_stores_are_there_too(tmp_path):
    """An image may stand on layers of a store that is only read."""
    disk, shared = Disk(tmp_path / "own"), Disk(tmp_path / "shared")
    below = shared.pull("example.com/base:1", [BASE])
    above = disk.pull("example.com/app:1", [BASE, APP])
    disk.layers = [layer for layer in disk.layers if "parent" in layer]
    disk.save()
    shared.save()

    assert () == look(disk.root).images
    assert sorted([below, above]) == [image.digest for image in look(disk.root, shared.root).images]


def test_an_image_in_two_stores_is_one(tmp_path):
    disk, shared = Disk(tmp_path / "own"), Disk(tmp_path / "shared")
    digests = {one.pull("example.com/app:1", [BASE]) for one in (disk, shared)}
    disk.save()
    shared.save()

    assert [*digests] == [image.digest for image in look(disk.root, shared.root).images]


def test_layers_of_containers_are_no_images(disk):
    digest = disk.pull("example.com/app:1", [BASE])
    disk.layers.append({"id": "container", "parent": disk.layers[-1]["id"]})
    disk.save()
    put(disk.layers_folder / "volatile-layers.json", encode([{"id": "volatile", "parent": disk.layers[0]["id"]}]))

    assert [digest] == [image.digest for image in look(disk.root).images]


def test_an_image_that_is_being_recorded_is_not_there_yet(disk):
    """Its record comes first, then its documents, then the record again with their digests."""
    disk.pull("example.com/app:1", [BASE])
    disk.images[0]["big-data-digests"] = {}
    disk.save()

    assert () == look(disk.root).images


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda path: path.unlink(), id="gone"),
        pytest.param(lambda path: put(path, b"{}"), id="other bytes"),
        pytest.param(lambda path: put(path, b" " * (4 * 1024 * 1024 + 1)), id="too large"),
        pytest.param(as_link, id="a link"),
        pytest.param(as_pipe, id="a pipe"),
    ],
)
def test_without_documents_the_records_speak(disk, spoil):
    digest = disk.pull("example.com/app:1", [BASE, APP])
    disk.save()
    for path in (disk.images_folder / disk.images[0]["id"]).iterdir():
        spoil(path)

    (image,) = look(disk.root).images

    assert (digest, b"", None) == (image.digest, image.manifest, image.platform)
    assert (Layer(BASE.digest, 100, BASE.diff_id, 300), Layer(APP.digest, 20, APP.diff_id, 50)) == image.layers


def test_documents_are_read_once(disk, monkeypatch):
    disk.pull("example.com/app:1", [BASE])
    disk.save()
    reads = []
    read = stores.ContainersStore.document

    def counted(store, image, name):
        reads.append(name)
        return read(store, image, name)

    monkeypatch.setattr(stores.ContainersStore, "document", counted)
    one = StorageSource(disk.root)

    first, second = asyncio.run(one.look()), asyncio.run(one.look())
    disk.pull("example.com/other:1", [OTHER])
    disk.save()
    asyncio.run(one.look())

    assert first.images == second.images
    assert 4 == len(reads) == len(set(reads))


def test_what_could_not_be_read_is_tried_again_when_the_list_changed(disk):
    digest = disk.pull("example.com/app:1", [BASE])
    disk.save()
    manifest = disk.images_folder / disk.images[0]["id"] / "manifest"
    named = next(path for path in manifest.parent.iterdir() if path.name.startswith("=bWFuaWZlc3Q"))
    whole = named.read_bytes()
    put(named, b"half")
    one = StorageSource(disk.root)
    before = asyncio.run(one.look())
    put(named, whole)
    disk.save()

    after = asyncio.run(one.look())

    assert [(digest, b"")] == [(image.digest, image.manifest) for image in before.images]
    assert [(digest, whole)] == [(image.digest, image.manifest) for image in after.images]


def test_documents_beyond_what_a_look_reads_come_with_the_next(disk, monkeypatch):
    for name in "abc":
        disk.pull(f"example.com/{name}:1", [Written(name)])
    disk.save()
    monkeypatch.setattr(store_documents, "LOOK_LIMIT", 1)
    monkeypatch.setattr("lamina.clients.cri.storage.storage_source.POLL_SECONDS", 3600.0)
    one = StorageSource(disk.root)

    async def looks() -> list[int]:
        found: list[int] = []
        while not found or found[-1] < 3:
            told = await one.look()
            assert 3 == len(told.images)
            assert all(image.layers for image in told.images)
            found.append(sum(bool(image.manifest) for image in told.images))
            # It must not wait for a change: there is more to tell.
            await asyncio.wait_for(one.changed(), 60)
        return found

    assert [1, 1, 2, 2, 3] == asyncio.run(looks())


def test_manifests_beyond_what_is_kept_tell_their_layers_only(disk, monkeypatch):
    digest = disk.pull("example.com/app:1", [BASE])
    disk.save()
    monkeypatch.setattr(store_documents, "KEPT_LIMIT", 1)

    (image,) = look(disk.root).images

    assert (digest, b"") == (image.digest, image.manifest)
    assert 1 == len(image.layers)


def test_what_is_gone_makes_room_for_what_comes(disk, monkeypatch):
    disk.pull("example.com/old:1", [BASE])
    disk.save()
    one = StorageSource(disk.root)
    (old,) = asyncio.run(one.look()).images
    monkeypatch.setattr(store_documents, "KEPT_LIMIT", len(old.manifest) + 1)
    disk.images.clear()
    new = disk.pull("example.com/new:1", [OTHER])
    disk.save()

    assert [new] == [sha(image.manifest) for image in asyncio.run(one.look()).images]


def test_of_two_layers_with_one_id_the_first_counts(disk):
    """As for containers/storage itself."""
    digest = disk.pull("example.com/app:1", [BASE])
    disk.layers.append({**disk.layers[0], "diff-size": 7})
    disk.save()

    assert [(digest, 300)] == [(image.digest, image.layers[0].unpacked) for image in look(disk.root).images]


def test_of_too_many_images_the_newest_are_told(disk, monkeypatch, caplog):
    digests = [disk.pull(f"example.com/{name}:1", [Written(name)]) for name in "abc"]
    disk.save()
    monkeypatch.setattr(storage_source, "IMAGE_LIMIT", 2)

    assert sorted(digests[1:]) == [image.digest for image in look(disk.root).images]
    assert ["image limit exceeded, oldest skipped"] == [record.message for record in caplog.records]


# ------------------------------------------------------------------------------------------------------------- trouble


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        pytest.param(lambda path: path.write_bytes(b""), "layers.json is empty on every attempt", id="empty"),
        pytest.param(lambda path: path.write_bytes(b'[{"id"'), "layers.json cannot be decoded", id="half"),
        pytest.param(lambda path: path.write_bytes(b'[{"id":"\xff\xfe"}]'), "layers.json cannot be", id="not UTF-8"),
        pytest.param(lambda path: path.write_bytes(b"[" * 100_000), "layers.json cannot be decoded", id="deep"),
        pytest.param(lambda path: os.truncate(path, 100 * 1024 * 1024), "has 104857600 bytes, more", id="100 MiB"),
        pytest.param(as_pipe, "is not a regular file", id="a pipe"),
        pytest.param(as_link, "is a symbolic link", id="a link"),
        pytest.param(lambda path: (path.unlink(), path.mkdir()), "is not a regular file", id="a folder"),
    ],
)
def test_a_list_that_cannot_be_used_is_said_in_one_line(disk, at_once, spoil, words):
    disk.pull("example.com/app:1", [BASE])
    disk.save()
    path = disk.layers_folder / "layers.json"
    spoil(path)
    os.utime(path, (1, 1), follow_symlinks=False)

    with pytest.raises(RuntimeSourceError, match=words) as caught:
        look(disk.root)
    assert str(caught.value).startswith(f"cri-o: {disk.root}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(lambda path: None, "no such file or directory", id="nothing there"),
        pytest.param(lambda path: path.mkdir(), "there is no image store in .*; name the folder", id="another folder"),
        pytest.param(lambda path: path.write_bytes(b""), "not a directory", id="a file"),
        pytest.param(
            lambda path: (
                path.mkdir(),
                (path / "overlay-images").symlink_to("/tmp"),
                (path / "overlay-layers").mkdir(),
            ),
            "there is no image store in",
            id="a link to elsewhere",
        ),
    ],
)
def test_a_place_without_a_store_is_said_in_one_line(tmp_path, make, words):
    make(tmp_path / "store")

    with pytest.raises(RuntimeSourceError, match=words) as caught:
        look(tmp_path / "store")
    assert "\n" not in str(caught.value)


async def test_a_look_that_hangs_is_not_joined_by_another(disk, monkeypatch):
    """Who gave up waiting for a file system may come again; the threads must not pile up on each other's toes."""
    disk.save()
    begun, hanging = threading.Event(), threading.Event()
    images = stores.ContainersStore.images

    def hang(store):
        begun.set()
        hanging.wait(30)
        return images(store)

    monkeypatch.setattr(stores.ContainersStore, "images", hang)
    one = StorageSource(disk.root)
    first = asyncio.ensure_future(one.look())
    await asyncio.to_thread(begun.wait)
    first.cancel()

    with pytest.raises(
        RuntimeSourceError, match="an earlier look is still running; check whether its file system responds"
    ):
        await one.look()
    hanging.set()
    seen = None
    while seen is None:
        with contextlib.suppress(RuntimeSourceError):  # the earlier one is about to end
            seen = await one.look()
        await asyncio.sleep(0.01)
    assert () == seen.images


def test_hostile_layers_cost_their_images_and_nothing_else(disk):
    good = disk.pull("example.com/good:1", [BASE])
    circle = [{"id": f"c{place}", "parent": f"c{(place + 1) % 10}"} for place in range(10)]
    tower = [{"id": f"t{place}", "parent": f"t{place - 1}" if place else ""} for place in range(100_000)]
    disk.layers += [*circle, *tower, {"id": "n", "diff-size": -5, "compressed-size": -7}]
    for top in ("c3", "t99999", "missing"):
        disk.record(f"example.com/{top}:1", sha(top)[7:], top, {"manifest": top.encode()})
    manifest = manifest_of([APP], b"{}")
    disk.record("example.com/odd:1", sha("n")[7:], "n", {"manifest": manifest})
    disk.record("example.com/out:1", "../outside", disk.layers[0]["id"], {"manifest": manifest_of([BASE], b"{}")})
    disk.save()

    found = {image.digest: image for image in look(disk.root).images}

    assert {good, sha(manifest)} == set(found)
    assert (Layer(APP.digest, 20),) == found[sha(manifest)].layers
