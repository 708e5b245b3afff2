"""A containerd as a source: what is held, what is not, and what goes wrong."""

import asyncio
import time

import grpc
import pytest

from lamina.clients.cri.containerd import containerd_client, containerd_inventory, image_documents, snapshots
from lamina.clients.cri.containerd.containerd_source import ContainerdSource
from lamina.clients.cri.protos import happenings_pb2, introspection_pb2, types_pb2
from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.model.image import Layer, Platform
from lamina.model.layer_report import ActivePull, NodeRuntime
from testbed import made
from tests.unit.clients.cri.containerd.fake_containerd import commit, downloading
from tests.unit.clients.cri.containerd.patience import answered, settle

BASE, APP, MORE = (made.layer({f"{name}": name.encode() * 100}) for name in ("base", "app", "more"))
WEB = made.image([BASE, APP], architecture="amd64")
JOB = made.image([BASE, MORE], architecture="amd64")


async def heard(source, event):
    """Wait until the source has heard *event*, something its ledger can show."""
    async with asyncio.timeout(60):
        while not event(source._event_log):
            await asyncio.sleep(0.01)


async def test_an_image_is_held_with_everything_that_is_known_of_it(fake, source):
    fake.pulled("r.example/web:1", WEB)
    holdings = await source.look()

    (image,) = holdings.images
    assert WEB.digest == image.digest
    assert ("r.example/web:1", f"r.example/web@{WEB.digest}") == image.names
    assert BASE.size + APP.size == image.size
    expected = tuple(Layer(each.digest, each.size, each.diff_id, 4096) for each in (BASE, APP))
    assert expected == image.layers
    assert (WEB.manifest, made.MANIFEST, False) == (image.manifest, image.media_type, image.lazy)
    assert NodeRuntime("containerd", "9.9.9") == holdings.runtime
    assert Platform("linux", "amd64") == holdings.platform
    assert holdings.disk >= holdings.disk_free > 0
    assert () == holdings.pulling


async def test_a_name_with_the_digest_of_an_index_leads_to_the_manifest(fake, source):
    index = made.index([WEB, made.image([APP], architecture="s390x")], attestations=True)
    fake.pulled("r.example/web:1", WEB)
    fake.blob(index.index)
    fake.names[f"r.example/web@{index.digest}"] = index.digest

    (image,) = (await source.look()).images
    assert f"r.example/web@{index.digest}" in image.names
    assert 3 == len(image.names)


async def test_an_image_that_is_not_unpacked_is_not_held(fake, source):
    fake.pulled("web:1", WEB)
    fake.store(JOB)
    fake.names["job:1"] = JOB.digest

    assert [WEB.digest] == [image.digest for image in (await source.look()).images]


async def test_what_is_no_image_is_left_out_and_counted(fake, source):
    fake.pulled("web:1", WEB)
    fake.names.update({"broken:1": fake.blob(b"{"), "gone:1": made.digest(b"gone"), "odd:1": "no digest"})

    assert 1 == len((await source.look()).images)
    assert {image_documents.MALFORMED: 2, image_documents.ABSENT: 1} == source.complaints


async def test_more_images_than_are_looked_at_are_counted(fake, source, monkeypatch):
    monkeypatch.setattr(containerd_inventory, "IMAGE_LIMIT", 2)
    for name in "abcd":
        fake.pulled(f"{name}:1", made.image([made.layer({name: b"x"})], architecture="amd64"))

    assert 2 == len((await source.look()).images)
    # Two images, each with three names.
    assert {containerd_inventory.TOO_MANY: 6} == source.complaints


@pytest.mark.parametrize(
    ("keep", "expected"), [pytest.param(True, "set", id="blobs are kept"), pytest.param(False, "prefix", id="dropped")]
)
async def test_how_layers_are_reused_follows_from_what_is_kept(fake, source, keep, expected):
    fake.pulled("web:1", WEB, keep=keep)

    assert expected == (await source.look()).reuse


async def test_dropped_blobs_that_still_lie_there_do_not_deceive(fake, source):
    fake.pulled("web:1", WEB, keep=False)
    fake.blob(APP.blob)

    assert "prefix" == (await source.look()).reuse


async def test_where_nothing_is_held_only_the_prefix_counts(source):
    assert "prefix" == (await source.look()).reuse


@pytest.mark.parametrize(
    ("snapshotter", "lazy", "unpacked"),
    [
        pytest.param("stargz", True, None, id="stargz"),
        pytest.param("soci", True, None, id="soci"),
        pytest.param("nydus", True, None, id="nydus"),
        pytest.param("zfs", False, 4096, id="zfs"),
        pytest.param("native", False, None, id="native, whose sizes are not those of layers"),
    ],
)
async def test_an_image_is_lazy_when_its_snapshotter_is(fake, source, snapshotter, lazy, unpacked):
    fake.plugins.append(introspection_pb2.Plugin(id=snapshotter))
    fake.pulled("web:1", WEB, snapshotter=snapshotter)

    (image,) = (await source.look()).images
    assert (lazy, unpacked) == (image.lazy, image.layers[0].unpacked)


async def test_an_image_that_is_also_unpacked_in_full_is_not_lazy(fake, source):
    fake.plugins.append(introspection_pb2.Plugin(id="nydus"))
    fake.pulled("web:1", WEB, snapshotter="nydus")
    fake.unpack(WEB, "overlayfs")

    assert not (await source.look()).images[0].lazy


async def test_the_platform_is_what_containerd_says(fake, source):
    arm = made.image([APP], architecture="arm64", variant="v8")
    fake.plugins = [
        introspection_pb2.Plugin(id="overlayfs", platforms=[types_pb2.Platform(os="linux", architecture="arm64")])
    ]
    index = made.index([WEB, arm])
    fake.pulled("web:1", arm)
    fake.names["web:1"] = fake.blob(index.index)
    holdings = await source.look()

    assert Platform("linux", "arm64") == holdings.platform
    assert [arm.digest] == [image.digest for image in holdings.images]


async def test_a_look_without_news_asks_one_question(fake, source):
    fake.pulled("web:1", WEB)
    first = await source.look()
    fake.asked.clear()
    second = await source.look()

    assert {"Content/ListStatuses": 1} == fake.asked
    assert first.images[0] is second.images[0]


async def test_an_image_that_comes_is_seen(fake, source):
    await source.look()
    await settle(fake)
    fake.pulled("web:1", WEB)
    for chain in fake.snapshots["overlayfs"]:
        fake.happen("/snapshot/commit", commit(chain))
    fake.happen("/images/create")
    await source.changed()

    assert [WEB.digest] == [image.digest for image in (await source.look()).images]
    # At the first look, and not again: events said which snapshots are new.
    assert 1 == fake.asked["Snapshots/List"]


async def test_an_image_that_goes_is_forgotten(fake, source):
    fake.pulled("web:1", WEB)
    await source.look()
    await settle(fake)
    fake.names.clear()
    fake.happen("/images/delete")
    await source.changed()

    assert () == (await source.look()).images
    assert source._inventory._documents.known(WEB.digest) is None
    assert {} == source._inventory._snapshots.sizes


async def test_sizes_may_come_later(fake, source, monkeypatch):
    monkeypatch.setattr(snapshots, "MEASURED_AT_ONCE", 2)
    for name in "abc":
        fake.pulled(f"{name}:1", made.image([made.layer({name: b"x"})], architecture="amd64"))
    first = [layer.unpacked for image in (await source.look()).images for layer in image.layers]
    await source.changed()
    second = [layer.unpacked for image in (await source.look()).images for layer in image.layers]

    assert [None, 4096, 4096] == sorted(first, key=lambda size: size or 0)
    assert [4096] * 3 == second
    assert 3 == fake.asked["Snapshots/Usage"]


async def test_a_pull_is_told_with_its_image_and_its_progress(fake, source):
    """The image has no name yet: its manifest is found in the store."""
    now = time.time()
    fake.pulled("web:1", WEB)
    await source.look()
    fake.store(JOB)
    fake.blobs[JOB.digest].labels["containerd.io/distribution.source.r.example"] = "team/job,other"
    fake.blobs.pop(MORE.digest)
    fake.statuses = [downloading(MORE.digest, 7, MORE.size, now=now)]
    holdings = await source.look()

    name = f"r.example/team/job@{JOB.digest}"
    assert (ActivePull(name, JOB.digest, done=7, total=MORE.size),) == holdings.pulling
    fake.asked.clear()
    assert holdings.pulling == (await source.look()).pulling
    assert {"Content/ListStatuses": 1} == fake.asked


async def test_a_pull_of_an_image_that_has_a_name_is_told_by_it(fake, source):
    fake.store(JOB)
    fake.names["r.example/job:1"] = JOB.digest
    fake.statuses = [downloading(MORE.digest, 7, MORE.size, now=time.time())]

    assert ["r.example/job:1"] == [pull.name for pull in (await source.look()).pulling]


@pytest.mark.parametrize(("came", "count"), [(False, 0), (True, 1)], ids=["given up", "being unpacked"])
async def test_a_pull_without_downloads_goes_on_only_if_its_layers_are_there(fake, source, came, count):
    """Early versions do not say that it was given up; it would be told for ten minutes."""
    fake.store(JOB)
    fake.blobs.pop(MORE.digest)
    fake.statuses = [downloading(MORE.digest, 7, MORE.size, now=time.time())]
    assert 1 == len((await source.look()).pulling)
    fake.statuses.clear()
    if came:
        fake.blob(MORE.blob)
    # Between two downloads there may be none for a moment.
    assert 1 == len((await source.look()).pulling)
    for _ in range(2):
        await source.look()

    assert count == len((await source.look()).pulling)
    # At the first look twice, for records and for the manifest, once for its layers, and once in doubt.
    assert 4 == fake.asked["Content/List"]


async def test_a_download_that_nothing_explains_is_searched_for_a_few_times(fake, source):
    fake.statuses = [downloading(made.digest(b"stray"), 7, 9, now=time.time())]
    for _ in range(5):
        await source.look()
    (pull,) = (await source.look()).pulling

    assert (None, 7, 9) == (pull.digest, pull.done, pull.total)
    # Once for the records at the first look, and three times in vain.
    assert 4 == fake.asked["Content/List"]


async def test_unpacking_is_measured_from_when_nothing_had_to_be_waited_for(fake, source):
    """Prepared at 10, downloaded at 14, committed at 16: 8 MiB in 2 s."""
    layer = made.layer({"big": b"x"})
    image = made.image([layer], architecture="amd64")
    await source.look()
    await settle(fake)
    fake.pulled("big:1", image)
    (chain,) = fake.unpack(image, size=8 * 1024 * 1024)
    fake.happen("/snapshot/prepare", happenings_pb2.SnapshotPrepare(key=f"extract-1-x {chain}"), at=10.0)
    fake.happen("/content/create", happenings_pb2.ContentCreate(digest=layer.digest, size=layer.size), at=14.0)
    fake.happen("/snapshot/commit", commit(chain), at=16.0)
    fake.happen("/images/create")
    await source.changed()

    assert 4 * 1024 * 1024 == (await source.look()).unpack_rate


async def test_where_no_event_says_when_a_download_ended_the_store_does(fake, source):
    layer = made.layer({"big": b"x"})
    image = made.image([layer], architecture="amd64")
    await source.look()
    await settle(fake)
    fake.pulled("big:1", image)
    fake.blobs[layer.digest].created = 15.0
    (chain,) = fake.unpack(image, size=8 * 1024 * 1024)
    fake.happen("/snapshot/prepare", happenings_pb2.SnapshotPrepare(key=f"extract-1-x {chain}"), at=10.0)
    fake.happen("/snapshot/commit", commit(chain, ""), at=16.0)
    fake.happen("/images/create")
    await source.changed()

    assert 8 * 1024 * 1024 == (await source.look()).unpack_rate


# ------------------------------------------------------------------------------------------------------- what goes wrong


async def problem(source):
    with pytest.raises(RuntimeSourceError) as caught:
        await source.look()
    assert "containerd" == caught.value.runtime
    assert "\n" not in str(caught.value)
    return caught.value.problem


async def test_where_nobody_listens_one_is_told_where(tmp_path):
    source = ContainerdSource(tmp_path / "absent.sock")

    assert f"no response at {tmp_path}/absent.sock" in await problem(source)
    await source.close()


@pytest.mark.parametrize("method", ["Version/Version", "Images/List", "Content/ListStatuses", "Snapshots/List"])
async def test_a_question_without_an_answer_ends_after_its_time(fake, source, monkeypatch, method):
    monkeypatch.setattr(containerd_client, "DEADLINE", 0.2)
    fake.faults[method] = lambda context: asyncio.sleep(30)

    assert "no response in 0.2 s" in await problem(source)


async def test_a_stream_that_breaks_in_the_middle_is_trouble_and_the_next_look_is_whole(fake, source):
    fake.pulled("web:1", WEB)
    fake.faults["Content/List"] = lambda context: context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
    assert "gone" in await problem(source)
    fake.faults.clear()

    assert 1 == len((await source.look()).images)


@pytest.mark.parametrize("method", ["Images/List", "Content/List", "Content/ListStatuses"])
async def test_bytes_that_are_no_message_are_trouble(fake, source, method):
    fake.pulled("web:1", WEB)
    fake.garbled.add(method)

    assert f"{method}: the response cannot be decoded: see its log" == await problem(source)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(lambda context: context.abort(grpc.StatusCode.DATA_LOSS, "input/output error"), id="a bad disk"),
        pytest.param(lambda context: context.abort(grpc.StatusCode.INTERNAL, "panic"), id="a bug"),
    ],
)
async def test_a_document_that_containerd_cannot_read_is_left_out_until_it_can(fake, source, fault):
    fake.pulled("web:1", WEB)
    fake.faults["Content/Read"] = fault
    assert () == (await source.look()).images
    assert {image_documents.UNREADABLE: 1} == source.complaints
    fake.faults.clear()
    source._event_log.missed()

    assert 1 == len((await source.look()).images)


async def test_a_size_that_containerd_cannot_tell_is_not_asked_for_again_and_again(fake, source):
    fake.pulled("web:1", WEB)
    fake.faults["Snapshots/Usage"] = lambda context: context.abort(grpc.StatusCode.UNKNOWN, "quota")
    for _ in range(2):
        await source.look()
    (image,) = (await source.look()).images

    assert [None, None] == [layer.unpacked for layer in image.layers]
    assert 2 == fake.asked["Snapshots/Usage"]


async def test_an_answer_that_is_too_large_is_trouble(fake, source):
    fake.names = {f"{number:04}" + "x" * 4000: WEB.digest for number in range(4500)}

    assert "RESOURCE_EXHAUSTED" in await problem(source)


async def test_a_method_that_is_not_there_is_trouble(fake, source):
    fake.faults["Images/List"] = lambda context: context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown service")

    assert "UNIMPLEMENTED (unknown service)" in await problem(source)


async def test_a_containerd_that_cannot_tell_its_snapshotters_has_the_usual_one(fake, source):
    fake.faults["Introspection/Plugins"] = lambda context: context.abort(grpc.StatusCode.UNIMPLEMENTED, "no")
    fake.pulled("web:1", WEB)

    assert 1 == len((await source.look()).images)


async def test_a_snapshot_that_goes_while_its_size_is_asked_for_is_not_held(fake, source):
    fake.pulled("web:1", WEB)
    fake.faults["Snapshots/Usage"] = lambda context: context.abort(grpc.StatusCode.NOT_FOUND, "gone")

    assert () == (await source.look()).images


async def test_a_containerd_that_was_restarted_is_looked_at_again(fake, source):
    fake.pulled("web:1", WEB)
    before = await source.look()
    await fake.stop()
    assert "no response" in await problem(source)
    await fake.start()

    assert before.images == (await answered(source)).images


async def test_waiting_may_be_broken_off_and_taken_up_again(fake, source):
    await source.look()
    await settle(fake)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await source.changed()
    fake.happen("/images/create")
    async with asyncio.timeout(60):
        await source.changed()

    assert "images" in source._event_log.stale


async def test_a_look_that_is_broken_off_loses_nothing(fake, source):
    fake.pulled("web:1", WEB)
    fake.faults["Images/List"] = lambda context: asyncio.sleep(30)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await source.look()
    fake.faults.clear()

    assert 1 == len((await source.look()).images)


async def test_a_namespace_is_a_plain_word(tmp_path):
    with pytest.raises(RuntimeSourceError, match="is not a namespace"):
        ContainerdSource(tmp_path / "c.sock", namespace='k8s.io",topic~="')


async def test_everything_is_asked_in_the_namespace_and_nothing_is_written(fake, source):
    """The methods there are, in full: a look can do no more than these."""
    asked = []

    async def note(context):
        asked.append(dict(context.invocation_metadata()))

    fake.faults["Images/List"] = note
    fake.pulled("web:1", WEB)
    await source.look()

    assert "k8s.io" == asked[0]["containerd-namespace"]
    expected = {
        "version.v1.Version/Version",
        "introspection.v1.Introspection/Plugins",
        "images.v1.Images/List",
        "content.v1.Content/List",
        "content.v1.Content/Read",
        "content.v1.Content/ListStatuses",
        "snapshots.v1.Snapshots/List",
        "snapshots.v1.Snapshots/Usage",
        "events.v1.Events/Subscribe",
    }
    assert expected >= set(source.counts)
