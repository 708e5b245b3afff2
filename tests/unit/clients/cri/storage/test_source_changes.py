"""A store that changes: when a look is worth it, and what is told while somebody writes."""

import asyncio
import json
import random
import subprocess
import sys
import time

import pytest

from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.clients.cri.storage import storage_source, store_files, stores
from lamina.clients.cri.storage.storage_source import StorageSource
from tests.unit.clients.cri.storage.written import Disk, Written, put

BASE = Written("base", 100, 300)


@pytest.fixture
def disk(tmp_path):
    return Disk(tmp_path)


def look(root):
    return asyncio.run(StorageSource(root).look())


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(storage_source, "POLL_SECONDS", 0.01)


async def is_waiting(waiting: asyncio.Task[None]) -> bool:
    await asyncio.sleep(0.1)
    return not waiting.done()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda disk: disk.save(), id="both lists replaced"),
        pytest.param(lambda disk: put(disk.layers_folder / "volatile-layers.json", b"[]"), id="a new list"),
        pytest.param(lambda disk: (disk.images_folder / "images.json").unlink(), id="a list gone"),
        pytest.param(lambda disk: disk.images_folder.rename(disk.root / "away"), id="the store gone"),
    ],
)
async def test_it_waits_until_a_list_was_replaced(disk, quick, change):
    disk.pull("example.com/app:1", [BASE])
    disk.save()
    one = StorageSource(disk.root)
    await one.look()
    waiting = asyncio.ensure_future(one.changed())

    assert await is_waiting(waiting)
    change(disk)
    await asyncio.wait_for(waiting, 60)


async def test_what_changed_after_the_look_began_is_not_missed(disk, quick):
    disk.save()
    one = StorageSource(disk.root)
    await one.look()
    disk.pull("example.com/app:1", [BASE])
    disk.save()

    await asyncio.wait_for(one.changed(), 60)


async def test_it_looks_again_after_a_while_though_nothing_changed(disk, quick, monkeypatch):
    monkeypatch.setattr(storage_source, "FULL_LOOK_SECONDS", 0.2)
    disk.save()
    one = StorageSource(disk.root)
    await one.look()

    await asyncio.wait_for(one.changed(), 60)


async def test_waiting_can_be_given_up_and_begun_again(disk, quick):
    disk.save()
    one = StorageSource(disk.root)
    await one.look()
    waiting = asyncio.ensure_future(one.changed())
    await asyncio.sleep(0.03)
    waiting.cancel()
    again = asyncio.ensure_future(one.changed())

    assert await is_waiting(again)
    disk.save()
    await asyncio.wait_for(again, 60)
    await one.close()


@pytest.mark.parametrize(
    ("times", "looks"),
    [
        pytest.param(2, 3, id="it comes to rest"),
        pytest.param(99, 1 + len(storage_source.PAUSES), id="it never rests, and what was read is whole all the same"),
    ],
)
def test_a_list_that_is_replaced_while_others_are_read_is_noticed(disk, monkeypatch, times, looks):
    digest = disk.pull("example.com/app:1", [BASE])
    disk.save()
    layers, seen = stores.ContainersStore.layers, []

    def replaced_meanwhile(store):
        seen.append(store)
        if len(seen) <= times:
            disk.save()
        return layers(store)

    monkeypatch.setattr(stores.ContainersStore, "layers", replaced_meanwhile)

    assert [digest] == [image.digest for image in look(disk.root).images]
    assert looks == len(seen)


# ------------------------------------------------------------------------------------------------- a writer without care

CARELESS = """
import json, os, random, sys, time
path, whole, seed = sys.argv[1], open(sys.argv[1], "rb").read(), int(sys.argv[2])
rng = random.Random(seed)
other = json.dumps([*json.loads(whole), {"id": "container"}]).encode()
print("writing", flush=True)
while True:
    data = rng.choice([whole, other])
    with open(path, "r+b", buffering=0) as file:
        file.truncate(0)
        for begin in range(0, len(data), 200):
            file.write(data[begin : begin + 200])
            if rng.random() < 0.1:
                time.sleep(rng.random() / 300)
    time.sleep(rng.random() / 8)
"""


@pytest.mark.slow
def test_what_is_read_while_somebody_writes_without_care_is_right_or_not_told(disk):
    """containers/storage replaces files whole; whoever does not must not make us tell half of a store."""
    rng = random.Random(7)
    for name in range(20):
        disk.pull(f"example.com/{name}:1", [BASE, Written(f"app-{name}", rng.randrange(1000), rng.randrange(5000))])
    disk.save()
    one = StorageSource(disk.root)
    right = asyncio.run(one.look()).images
    command = [sys.executable, "-I", "-c", CARELESS, str(disk.layers_folder / "layers.json"), "7"]
    outcomes = {"right": 0, "trouble": 0}
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            for _ in range(200):
                try:
                    assert right == asyncio.run(one.look()).images
                    outcomes["right"] += 1
                except RuntimeSourceError:
                    outcomes["trouble"] += 1
        finally:
            writer.kill()

    assert 200 == sum(outcomes.values())
    assert outcomes["right"] > 100


def test_a_list_that_stays_in_pieces_is_given_up_within_seconds(disk, monkeypatch):
    disk.save()
    (disk.layers_folder / "layers.json").write_bytes(json.dumps([{"id": "x"}]).encode()[:-1])
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)

    with pytest.raises(RuntimeSourceError, match="on every attempt"):
        look(disk.root)
    # Between looks; a file that was written just now is left to rest besides.
    assert list(storage_source.PAUSES) == [rest for rest in rests if rest > store_files.REST]
