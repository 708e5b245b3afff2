"""Stores that the real containers/storage wrote, by way of skopeo, are told as the images were made."""

import asyncio
import hashlib
import subprocess
from pathlib import Path

import pytest

from lamina.clients.cri.runtime_discovery import find_source
from lamina.clients.cri.storage import storage_source
from lamina.clients.cri.storage.storage_source import StorageSource
from testbed import leftovers, made
from tests.integration.node_agent.held import in_order, layers_of, told

pytestmark = [pytest.mark.realtime, pytest.mark.needs("skopeo", root=True), pytest.mark.slow]

BASE = made.layer({"lib/base": made.noise(1, 300_000)})
ZSTD = made.layer({"lib/zstd": made.noise(2, 200_000)}, "zstd")
PLAIN = made.layer({"lib/plain": made.noise(3, 100_000)}, "none")
APP = made.layer({"app/main": b"text that compresses well " * 10_000})
IMAGE = made.image([BASE, ZSTD, PLAIN])
SHARING = made.image([BASE, APP])
APART = made.image([APP], variant="v3")
INDEX = made.index([made.image([BASE, APP, ZSTD]), made.image([ZSTD], architecture="s390x")], attestations=True)

REPOSITORY = "example.com/team"


class Storage:
    """A store and a skopeo that fills it."""

    def __init__(self, folder: Path, driver: str = "overlay", root: str = "root") -> None:
        self.root, self._layout = folder / root, folder / "layout"
        self._place = f"containers-storage:[{driver}@{self.root}+{folder / 'run'}]"

    def copy(self, name: str, image: made.MadeImage | made.MadeIndex) -> None:
        layout = self._layout / name
        layout.mkdir(parents=True)
        made.write_layout(layout, "it", image)
        self._skopeo("copy", "--quiet", f"oci:{layout}:it", f"{self._place}{REPOSITORY}/{name}:1")

    def remove(self, name: str) -> None:
        self._skopeo("delete", f"{self._place}{REPOSITORY}/{name}:1")

    def _skopeo(self, *arguments: str) -> None:
        command = ["skopeo", "--insecure-policy", *arguments]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert 0 == run.returncode, run.stderr


def names(name: str, *digests: str) -> list[str]:
    return [f"{REPOSITORY}/{name}:1", *(f"{REPOSITORY}/{name}@{digest}" for digest in digests)]


@pytest.fixture(autouse=True)
def unmounted(tmp_path):
    """The overlay driver mounts its folder onto itself and leaves it so."""
    yield
    leftovers.unmount(tmp_path)


@pytest.fixture
def storage(tmp_path):
    return Storage(tmp_path)


async def look(storage: Storage):
    return await StorageSource(storage.root).look()


@pytest.mark.parametrize("driver", ["overlay", "vfs"])
async def test_every_digest_and_size_is_as_the_images_were_made(tmp_path, driver):
    storage = Storage(tmp_path, driver)
    for name, image in {"image": IMAGE, "sharing": SHARING, "apart": APART, "index": INDEX}.items():
        storage.copy(name, image)

    found = await look(storage)

    here = INDEX.images[0]
    expected = in_order(
        told(IMAGE, *names("image", IMAGE.digest)),
        told(SHARING, *names("sharing", SHARING.digest)),
        told(APART, *names("apart", APART.digest)),
        told(here, *names("index", here.digest, INDEX.digest)),
    )
    assert expected == found.images
    assert "set" == found.reuse


async def test_layers_stand_in_the_order_in_which_the_store_unpacked_them(storage):
    """containers/storage names a layer after all below it, so the names of its files are the proof."""
    storage.copy("image", IMAGE)

    (image,) = (await look(storage)).images
    unpacked = list((storage.root / "overlay-layers").glob("*.tar-split.gz"))

    above, files = "", []
    for layer in image.layers:
        diff_id = str(layer.diff_id).removeprefix("sha256:")
        above = hashlib.sha256(f"{above}+{diff_id}".encode()).hexdigest() if above else diff_id
        files.append(above)
    assert sorted(files) == sorted(path.name.partition(".")[0] for path in unpacked)


async def test_an_image_that_came_in_two_compressions_is_told_under_both(storage):
    """The second pull finds every layer unpacked and changes nothing but the manifest."""
    again = made.layer({"lib/base": made.noise(1, 300_000)}, "zstd")
    other = made.image([again, APP])
    storage.copy("first", SHARING)
    storage.copy("second", other)

    found = {image.digest: image for image in (await look(storage)).images}

    assert {SHARING.digest: layers_of(SHARING), other.digest: layers_of(other)} == {
        digest: image.layers for digest, image in found.items()
    }
    tags = {f"{REPOSITORY}/first:1", f"{REPOSITORY}/second:1"}
    assert tags <= set(found[other.digest].names)
    assert not tags & set(found[SHARING.digest].names)


async def test_an_image_that_is_removed_is_not_told_any_longer(storage):
    storage.copy("image", IMAGE)
    storage.copy("sharing", SHARING)
    looking = StorageSource(storage.root)
    await looking.look()

    storage.remove("image")

    assert (told(SHARING, *names("sharing", SHARING.digest)),) == (await looking.look()).images
    storage.remove("sharing")
    assert () == (await looking.look()).images


async def test_a_change_is_heard_of(storage, monkeypatch):
    monkeypatch.setattr(storage_source, "POLL_SECONDS", 0.05)
    storage.copy("image", IMAGE)
    looking = StorageSource(storage.root)
    await looking.look()
    waiting = asyncio.ensure_future(looking.changed())
    await asyncio.sleep(0.3)
    assert not waiting.done()

    await asyncio.to_thread(storage.copy, "sharing", SHARING)
    await asyncio.wait_for(waiting, 10)


async def test_an_additional_store_is_told_too(tmp_path):
    own, shared = Storage(tmp_path, root="var/lib/containers/storage"), Storage(tmp_path / "shared")
    own.copy("image", IMAGE)
    shared.copy("sharing", SHARING)
    configuration = tmp_path / "etc/containers/storage.conf"
    configuration.parent.mkdir(parents=True)
    configuration.write_text('[storage.options]\nadditionalimagestores = ["/shared/root"]\n', encoding="utf-8")

    looking = await find_source("crio", socket=None, storage=own.root, disk=None)

    assert sorted([IMAGE.digest, SHARING.digest]) == [image.digest for image in (await looking.look()).images]


async def test_looks_while_images_come_and_go_never_tell_half_an_image(storage):
    """A look shows each image as it was made or not at all, and what came before the look is in it."""
    looking = StorageSource(storage.root)
    storage.copy("first", IMAGE)
    images = {
        f"n{number}": made.image([BASE, made.layer({f"app/{number}": made.noise(number, 1000)})])
        for number in range(30)
    }
    made_of = {image.digest: layers_of(image) for image in (IMAGE, *images.values())}
    there: set[str] = set()

    def come_and_go() -> None:
        for number, (name, image) in enumerate(images.items()):
            storage.copy(name, image)
            there.add(image.digest)
            if number % 3 == 2:
                there.discard(images[f"n{number - 1}"].digest)
                storage.remove(f"n{number - 1}")

    working = asyncio.ensure_future(asyncio.to_thread(come_and_go))
    looks = 0
    while not working.done():
        before = set(there)
        found = (await looking.look()).images
        assert {image.digest: made_of[image.digest] for image in found} == {
            image.digest: image.layers for image in found
        }
        # What was there before the look began and is there after it was there all the time.
        assert {IMAGE.digest, *(before & there)} <= {image.digest for image in found}
        looks += 1
    await working

    assert looks > 10
    assert {IMAGE.digest, *there} == {image.digest for image in (await looking.look()).images}
