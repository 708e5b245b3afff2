"""Real containerds, old and new: what is reported is what was built, while it comes, when it goes, and through faults."""

import asyncio
import functools
from concurrent.futures import ThreadPoolExecutor

import pytest

from lamina.clients.cri.containerd import containerd_client
from lamina.clients.cri.containerd.containerd_source import ContainerdSource
from lamina.clients.cri.runtime_discovery import find_source
from lamina.clients.cri.runtime_source import RuntimeSourceError
from testbed import containerd, cri, made
from testbed.errors import TestbedError
from testbed.slow_proxy import SlowProxy

pytestmark = [pytest.mark.realtime, pytest.mark.testbed("containerd", "registry"), pytest.mark.needs(root=True)]

MIB = 1024 * 1024
BLOCK = 4096
"""Snapshotters count whole blocks."""

FILES = {
    "base": {"lib/base": made.noise(1, 3_000_000), "lib/small": b"x"},
    "zstd": {"lib/zstd": made.noise(2, 2_000_000)},
    "plain": {"opt/a/b/plain": made.noise(3, 100_001)},
}
BASE = made.layer(FILES["base"])
ZSTD = made.layer(FILES["zstd"], "zstd")
PLAIN = made.layer(FILES["plain"], "none")
CONTENT = {BASE.digest: FILES["base"], ZSTD.digest: FILES["zstd"], PLAIN.digest: FILES["plain"]}

WEB = made.image([BASE, ZSTD, PLAIN])
JOB = made.image([BASE, PLAIN], docker=True)
LONE = made.image([ZSTD])
MANY = made.index([JOB, made.image([ZSTD], architecture="s390x")], attestations=True)

VERSIONS = [
    pytest.param("2.4.2", id="our own build"),
    pytest.param("debian", marks=pytest.mark.needs("containerd", root=True), id="the installed one"),
]
each_version = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
async def look_at():
    """Makes sources and lets go of them at the end."""
    sources = []

    def look_at(runtime):
        sources.append(ContainerdSource(runtime.socket))
        return sources[-1]

    yield look_at
    for source in sources:
        await source.close()


async def until(source, met, within=60.0):
    """Look whenever something changed until a look is as wanted; the answer is everything that was seen."""
    seen = []
    async with asyncio.timeout(within):
        while True:
            seen.append(await source.look())
            if met(seen[-1]):
                return seen
            await source.changed()


def digests(holdings):
    return [image.digest for image in holdings.images]


def measured(holdings):
    return all(layer.unpacked is not None for image in holdings.images for layer in image.layers)


def most_blocks(files):
    """The most that *files* may take: each file and each folder rounded up to whole blocks, the root included."""
    folders = {"/".join(path.split("/")[:depth]) for path in files for depth in range(path.count("/") + 1)}
    return sum(-(-len(data) // BLOCK) * BLOCK for data in files.values()) + len(folders) * BLOCK


@each_version
@pytest.mark.parametrize("discard", [False, True], ids=["blobs kept", "blobs dropped"])
async def test_what_is_reported_is_what_was_built(registry_server, containerd_factory, look_at, version, discard):
    """Shared layers and own ones, gzip, zstd and none, a manifest of OCI, one of Docker, an index with attestations."""
    host = registry_server.host
    runtime = containerd_factory(registry=host, version=version, discard=discard)
    for name, image in (("web", WEB), ("many", MANY), ("lone", LONE)):
        runtime.pull(made.push(host, f"agent/{name}:1", image))
    holdings = (await until(look_at(runtime), measured))[-1]

    assert sorted([WEB.digest, JOB.digest, LONE.digest]) == digests(holdings)
    by_digest = {image.digest: image for image in holdings.images}
    for built in (WEB, JOB, LONE):
        image = by_digest[built.digest]
        assert [(each.digest, each.size, each.diff_id) for each in built.layers] == [
            (layer.digest, layer.size, layer.diff_id) for layer in image.layers
        ]
        assert sum(each.size for each in built.layers) == image.size
        assert (built.manifest, built.media_type) == (image.manifest, image.media_type)
        assert (made.machine(), False) == (image.platform.architecture, image.lazy)
        for layer in image.layers:
            files = CONTENT[layer.digest]
            assert sum(map(len, files.values())) <= layer.unpacked <= most_blocks(files)
    assert (f"{host}/agent/many:1", f"{host}/agent/many@{MANY.digest}") == by_digest[JOB.digest].names
    assert ("prefix" if discard else "set") == holdings.reuse
    assert () == holdings.pulling
    assert holdings.disk > holdings.disk_free > 0
    assert holdings.runtime.version.startswith("1.6" if version == "debian" else version)


@pytest.mark.needs("containerd", root=True)
async def test_another_snapshotter_is_found_by_what_it_unpacked(
    registry_server, containerd_factory, look_at, monkeypatch
):
    """The one that copies, which counts with every layer all that lies below: such sizes are not told."""
    monkeypatch.setattr(containerd, "Setup", functools.partial(containerd.Setup, snapshotter="native"))
    runtime = containerd_factory(registry=registry_server.host, version="debian")
    source = look_at(runtime)
    await source.look()
    await asyncio.to_thread(runtime.pull, made.push(registry_server.host, "agent/web:1", WEB))
    seen = await until(source, lambda holdings: WEB.digest in digests(holdings), within=20)

    (image,) = seen[-1].images
    assert (False, [None] * 3) == (image.lazy, [layer.unpacked for layer in image.layers])
    assert "set" == seen[-1].reuse


@each_version
async def test_a_slow_pull_is_seen_while_it_goes_on(registry_server, containerd_factory, look_at, version):
    """Two layers are there, three are missing, and they come at a million bytes a second."""
    layers = [made.layer({f"slow/{number}": made.noise(50 + number, 2 * MIB)}) for number in range(5)]
    first, second = made.image(layers[:2]), made.image(layers)
    made.push(registry_server.host, "agent/slow:1", first)
    made.push(registry_server.host, "agent/slow:2", second)
    with SlowProxy(registry_server.host, bytes_per_second=1_000_000) as road:
        runtime = containerd_factory(registry=registry_server.host, version=version, registries={road.host: road.host})
        runtime.pull(f"{registry_server.host}/agent/slow:1")
        source = look_at(runtime)
        await source.look()
        pull = asyncio.create_task(asyncio.to_thread(runtime.pull, f"{road.host}/agent/slow:2"))
        seen = await until(source, lambda holdings: second.digest in digests(holdings))
        await pull

    missing = sum(layer.size for layer in layers[2:])
    steps = [each for holdings in seen for each in holdings.pulling if each.digest == second.digest]
    assert len(steps) >= 2
    assert {missing} == {step.total for step in steps}
    assert sorted(step.done for step in steps) == [step.done for step in steps]
    assert any(0 < step.done < missing for step in steps)
    assert "agent/slow" in steps[0].name
    assert () == seen[-1].pulling
    # What the proxy lets through, less what it loses in turns and we in looks that end in between.
    assert 300_000 < seen[-1].download_rate < 1_300_000
    assert seen[-1].unpack_rate > 1_000_000


@each_version
async def test_an_image_that_comes_or_goes_is_seen_by_events(registry_server, containerd_factory, look_at, version):
    runtime = containerd_factory(registry=registry_server.host, version=version)
    reference = made.push(registry_server.host, "agent/web:1", WEB)
    other = made.push(registry_server.host, "agent/lone:1", LONE)
    source = look_at(runtime)
    await source.look()
    await asyncio.to_thread(runtime.pull, reference)
    await asyncio.to_thread(runtime.pull, other)
    await until(source, lambda holdings: sorted([WEB.digest, LONE.digest]) == digests(holdings), within=20)
    await asyncio.to_thread(runtime.remove, reference)
    seen = await until(source, lambda holdings: [LONE.digest] == digests(holdings), within=20)

    assert [LONE.digest] == digests(seen[-1])
    assert source.counts["introspection.v1.Introspection/Plugins"] == 1


@each_version
async def test_a_restart_is_survived(registry_server, containerd_factory, look_at, version):
    runtime = containerd_factory(registry=registry_server.host, version=version)
    runtime.pull(made.push(registry_server.host, "agent/web:1", WEB))
    reference = made.push(registry_server.host, "agent/lone:1", LONE)
    source = look_at(runtime)
    before = (await until(source, measured))[-1]
    await asyncio.to_thread(runtime.program.kill)
    with pytest.raises(RuntimeSourceError, match="no response"):
        await source.look()
    await asyncio.to_thread(runtime.program.start)
    after = await answered(source)

    assert before.images == after.images
    await asyncio.to_thread(runtime.pull, reference)
    seen = await until(source, lambda holdings: LONE.digest in digests(holdings), within=60)
    assert 2 == len(seen[-1].images)


@each_version
async def test_a_containerd_that_hangs_is_trouble_and_no_wait(
    registry_server, containerd_factory, look_at, version, monkeypatch
):
    monkeypatch.setattr(containerd_client, "DEADLINE", 1.0)
    runtime = containerd_factory(registry=registry_server.host, version=version)
    runtime.pull(made.push(registry_server.host, "agent/web:1", WEB))
    source = look_at(runtime)
    before = await source.look()
    runtime.program.pause()
    try:
        with pytest.raises(RuntimeSourceError, match="no response in 1 s"):
            await source.look()
    finally:
        runtime.program.resume()

    assert before.images == (await answered(source)).images


@each_version
@pytest.mark.parametrize(
    "count", [pytest.param(40, id="40 images"), pytest.param(500, marks=pytest.mark.soak, id="500 images")]
)
async def test_a_full_node_is_read_once(registry_server, containerd_factory, look_at, version, count):
    """Every document and every size is asked for once; after that a look is one question."""
    bases = [made.layer({f"base/{number}": made.noise(number, 20_000)}) for number in range(10)]
    images = [
        made.image([bases[number % 10], made.layer({f"app/{number}": made.noise(900 + number, 500)})])
        for number in range(count)
    ]
    runtime = containerd_factory(registry=registry_server.host, version=version)
    with ThreadPoolExecutor(4) as pool:
        host = registry_server.host
        references = list(pool.map(lambda pair: made.push(host, f"agent/full/{pair[0]}:1", pair[1]), enumerate(images)))
        list(pool.map(runtime.pull, references))
    source = look_at(runtime)
    first = await source.look()
    last = (await until(source, measured))[-1]

    assert sorted(image.digest for image in images) == digests(first) == digests(last)
    asked = source.counts
    assert 2 * count == asked["content.v1.Content/Read"]
    assert count + 10 == asked["snapshots.v1.Snapshots/Usage"]
    asked.clear()
    await source.look()
    assert {"content.v1.Content/ListStatuses": 1} == asked


async def answered(source):
    """Look until there is an answer."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await source.look()
            except RuntimeSourceError:
                await asyncio.sleep(0.5)


@each_version
async def test_a_pull_that_was_cut_off_is_not_told_for_long(registry_server, containerd_factory, look_at, version):
    image = made.image([made.layer({"cut/off": made.noise(77, 2 * MIB)})])
    made.push(registry_server.host, "agent/cut:1", image)
    with SlowProxy(registry_server.host, bytes_per_second=200_000) as road:
        runtime = containerd_factory(registry=registry_server.host, version=version, registries={road.host: road.host})
        source = look_at(runtime)
        await source.look()
        pull = asyncio.create_task(asyncio.to_thread(cri.pull, runtime.socket, f"{road.host}/agent/cut:1", 5.0))
        await until(source, lambda holdings: any(one.digest == image.digest for one in holdings.pulling), within=10)
        with pytest.raises(TestbedError):
            await pull
        seen = await until(source, lambda holdings: not holdings.pulling, within=20)

    assert () == seen[-1].images


async def test_a_containerd_that_hangs_while_it_is_looked_for_is_not_taken_for_less(
    registry_server, containerd_factory, monkeypatch
):
    """It wakes up between the question that containerd answers and the one that every runtime answers."""
    monkeypatch.setattr(containerd_client, "DEADLINE", 1.0)
    runtime = containerd_factory(registry=registry_server.host)
    runtime.program.pause()
    waking = asyncio.create_task(asyncio.sleep(1.5))
    waking.add_done_callback(lambda _: runtime.program.resume())
    source = await find_source("auto", socket=runtime.socket, storage=None, disk=None)
    await source.close()

    assert ContainerdSource is type(source)
