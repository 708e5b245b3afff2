"""What was written the way containers/storage writes it reads back as it was."""

import asyncio
import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.clients.cri.storage import storage_source
from lamina.clients.cri.storage.storage_source import StorageSource
from lamina.model.image import Layer, Platform
from tests.unit.clients.cri.storage.written import Disk, Written, put

layers = st.builds(
    Written,
    name=st.sampled_from("abcdefgh"),
    size=st.integers(0, 10**12),
    unpacked=st.integers(0, 10**12),
    compression=st.sampled_from(["gzip", "zstd", "none"]),
)
# One name is one content: the same layer is as large wherever it is met.
pools = st.lists(layers, min_size=1, max_size=6, unique_by=lambda layer: layer.name)


@st.composite
def histories(draw):
    """Pulls and removals, each pull with the name, the layers and the platform of an image."""
    pool = draw(pools)
    stacks = st.lists(st.sampled_from(pool), max_size=6)
    pulls = st.tuples(stacks, st.sampled_from(["amd64", "arm64"]), st.booleans())
    return draw(st.lists(pulls | st.integers(0, 5), max_size=8))


def expected(layer: Written) -> Layer:
    size = layer.unpacked if layer.compression == "none" else layer.size
    return Layer(layer.digest, size, layer.diff_id, layer.unpacked)


@settings(max_examples=150)
@given(histories(), st.sampled_from(["overlay", "vfs"]))
def test_a_store_reads_back_as_it_was_written(history, driver):
    """By one source that looks after every step, so that what it keeps is right too."""
    held: dict[str, tuple[tuple[Layer, ...], str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        disk = Disk(Path(folder), driver)
        disk.save()
        reader = StorageSource(Path(folder))
        for place, step in enumerate(history):
            if isinstance(step, int):
                remove(disk, held, step)
            else:
                stack, architecture, by_index = step
                digest = disk.pull(f"example.com/{place}:1", stack, architecture, by_index=by_index)
                held[digest] = (tuple(map(expected, stack)), architecture)
            disk.save()
            found = asyncio.run(reader.look())

            assert sorted(held) == [image.digest for image in found.images]
            for image in found.images:
                told, architecture = held[image.digest]
                assert told == image.layers
                assert Platform("linux", architecture) == image.platform
                assert sum({layer.digest: layer.size for layer in told}.values()) == image.size


def remove(disk: Disk, held: dict[str, tuple[tuple[Layer, ...], str]], which: int) -> None:
    """Remove an image and the layers that nothing stands on any longer."""
    if which >= len(disk.images):
        return
    gone = disk.images.pop(which)
    held.pop(gone["big-data-digests"]["manifest"])
    needed: set[str] = set()
    above = {layer["id"]: layer.get("parent", "") for layer in disk.layers}
    for image in disk.images:
        top = image.get("layer", "")
        while top:
            needed.add(top)
            top = above[top]
    disk.layers = [layer for layer in disk.layers if layer["id"] in needed]


noise = st.binary(max_size=60) | st.text(alphabet='[]{}",:id0123456789 -\\u', max_size=60).map(str.encode)


@settings(max_examples=150)
@given(st.sampled_from(["images", "layers"]), noise, st.integers(0, 400), st.integers(0, 400))
def test_whatever_stands_in_a_list_the_answer_is_a_look_or_a_clear_line(kind, rubbish, begin, length):
    with tempfile.TemporaryDirectory() as folder:
        disk = Disk(Path(folder))
        disk.pull("example.com/app:1", [Written("a"), Written("b")])
        disk.save()
        path = Path(folder) / f"overlay-{kind}" / f"{kind}.json"
        whole = path.read_bytes()
        put(path, whole[:begin] + rubbish + whole[begin + length :])
        with mock.patch.object(storage_source, "PAUSES", ()):
            try:
                asyncio.run(StorageSource(Path(folder)).look())
            except RuntimeSourceError as trouble:
                assert "\n" not in str(trouble)  # noqa: PT017 - both answers are right, this one has to be one line
