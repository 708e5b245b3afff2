"""What is on its way: which image it belongs to, and how far it has come."""

import pytest

from lamina.clients.cri.containerd import pulls
from lamina.clients.cri.containerd.event_log import ContainerdEventLog, UnpackSpan
from lamina.clients.cri.containerd.image_documents import ContainerdImage
from lamina.clients.cri.containerd.pulls import FORGOTTEN, STALLED, ContainerdDownload, ContainerdPulls
from lamina.clients.cri.protos import content_pb2
from lamina.model.digest import chain_ids, digest_of
from lamina.model.image import Layer, Platform
from lamina.model.layer_report import ActivePull

NOW = 1_000_000.0
BASE, MIDDLE, TOP = digest_of(b"base"), digest_of(b"middle"), digest_of(b"top")
CONFIG = digest_of(b"config")
DIFFS = tuple(digest_of(f"diff {n}".encode()) for n in range(3))
CHAIN = chain_ids(DIFFS)
LAYERS = tuple(
    Layer(digest, size, diff) for digest, size, diff in zip((BASE, MIDDLE, TOP), (100, 50, 20), DIFFS, strict=True)
)
IMAGE = ContainerdImage(digest_of(b"image"), "", b"", CONFIG, Platform(), LAYERS, CHAIN[-1])


def a_download(digest, offset=0, total=100, started=NOW):
    return ContainerdDownload(f"layer-{digest}", digest, offset, total, started)


def a_status(ref, updated=NOW, **fields):
    status = content_pb2.Status(ref=ref, **fields)
    status.updated_at.FromNanoseconds(int(updated * 1e9))
    return status


@pytest.fixture
def ledger():
    return ContainerdEventLog()


@pytest.fixture
def going(ledger):
    return ContainerdPulls(ledger)


def told(going, found, unpacked=frozenset(), now=NOW):
    going.progress(found, set(unpacked), now)
    return going.report(found, set(unpacked))


@pytest.mark.parametrize(
    ("status", "digest"),
    [
        pytest.param(a_status(f"layer-{BASE}"), BASE, id="by its name"),
        pytest.param(a_status(f"layer-web@{BASE}"), BASE, id="by a longer name"),
        pytest.param(a_status("ingest-1", expected=BASE), BASE, id="by what is expected"),
        pytest.param(a_status("ingest-1"), "", id="by nothing"),
    ],
)
def test_a_download_is_known_by_its_digest(status, digest):
    assert [digest] == [download.digest for download in pulls.downloads([status], NOW)]


def test_a_download_that_stopped_growing_is_none():
    """What failed stays in the store until somebody clears up."""
    statuses = [a_status(f"layer-{BASE}", NOW - STALLED - 1), a_status(f"layer-{TOP}", NOW - STALLED + 1)]

    assert [TOP] == [download.digest for download in pulls.downloads(statuses, NOW)]


def test_claims_below_zero_are_zero():
    (download,) = pulls.downloads([a_status("layer-x", offset=-5, total=-1)], NOW)

    assert (0, 0) == (download.offset, download.total)


def test_a_pull_counts_all_layers_that_were_missing(going):
    going.begin(IMAGE, "web", {}, set(), NOW)
    found = [a_download(BASE, 30), a_download(MIDDLE, 10)]

    assert (ActivePull("web", IMAGE.digest, done=40, total=170),) == told(going, found)


@pytest.mark.parametrize(
    ("here", "unpacked", "total"),
    [
        pytest.param({}, {CHAIN[0]}, 70, id="the lowest is unpacked"),
        pytest.param({MIDDLE: NOW - 3600}, set(), 120, id="one in the middle is there as a blob"),
        pytest.param({MIDDLE: NOW + 1}, set(), 170, id="one came since the pull began"),
    ],
)
def test_what_was_there_before_is_not_missing(going, here, unpacked, total):
    going.begin(IMAGE, "web", here, unpacked, NOW)

    assert [total] == [pull.total for pull in told(going, [a_download(TOP, 0)], unpacked)]


def test_a_layer_this_pull_has_unpacked_was_missing(going, ledger):
    """The pull began when its first layer was prepared, before the download that is seen now."""
    ledger.prepared[CHAIN[0]] = NOW - 20
    ledger.spans[CHAIN[0]] = UnpackSpan(NOW - 10, NOW - 5)
    going.begin(IMAGE, "web", {BASE: NOW - 12}, {CHAIN[0]}, NOW)

    assert (ActivePull("web", IMAGE.digest, done=105, total=170),) == told(going, [a_download(MIDDLE, 5)], {CHAIN[0]})


def test_what_was_downloading_and_is_not_any_longer_has_come(going):
    going.begin(IMAGE, "web", {}, set(), NOW)
    told(going, [a_download(BASE, 90), a_download(MIDDLE, 10)])

    assert 110 == told(going, [a_download(MIDDLE, 10)])[0].done


def test_a_blob_that_events_called_complete_has_come(going, ledger):
    going.begin(IMAGE, "web", {}, set(), NOW)
    ledger.created[BASE] = NOW + 1
    ledger.created[TOP] = NOW - 3600

    assert 110 == told(going, [a_download(MIDDLE, 10)])[0].done


def test_a_pull_lasts_until_its_top_layer_is_unpacked(going):
    going.begin(IMAGE, "web", {}, set(), NOW)
    told(going, [a_download(BASE), a_download(MIDDLE), a_download(TOP)])

    assert [170] == [pull.done for pull in told(going, [], {CHAIN[0]})]
    assert () == told(going, [], set(CHAIN))


def test_a_pull_that_was_given_up_is_none(going, ledger):
    going.begin(IMAGE, "web", {}, set(), NOW)
    ledger.given_up.add(CHAIN[0])

    assert () == told(going, [])


def test_a_pull_without_a_sign_of_life_is_forgotten(going):
    going.begin(IMAGE, "web", {}, set(), NOW)

    assert 1 == len(told(going, [], now=NOW + FORGOTTEN))
    assert () == told(going, [], now=NOW + FORGOTTEN + 1)


def test_what_no_manifest_explains_is_told_by_its_own_name(going):
    stray = a_download(digest_of(b"stray"), 5, 9)

    assert [stray] == going.orphans([stray])
    assert (ActivePull(stray.ref, None, done=5, total=9),) == told(going, [stray])


def test_documents_of_a_known_pull_are_not_told_again(going):
    going.begin(IMAGE, "web", {}, set(), NOW)
    found = [a_download(TOP, 5), ContainerdDownload(f"config-{CONFIG}", CONFIG, 1, 2, NOW)]

    assert [IMAGE.digest] == [pull.digest for pull in told(going, found)]
    assert [] == going.orphans(found)


def test_a_flood_of_downloads_is_cut(going):
    found = [a_download(digest_of(b"%d" % number)) for number in range(1000)]

    assert pulls.PULL_LIMIT == len(told(going, found))
