"""What containerd's events said, and when."""

import pytest

from lamina.clients.cri.containerd.event_log import (
    CHANGE_LIMIT,
    CONTENTS,
    EVERYTHING,
    IMAGES,
    REMEMBERED,
    SNAPSHOTS,
    ContainerdEventLog,
    RuntimeSnapshotChange,
    UnpackSpan,
)
from lamina.clients.cri.protos import happenings_pb2, types_pb2

CHAIN = "sha256:" + "c" * 64
ABOVE = "sha256:" + "d" * 64
BLOB = "sha256:" + "b" * 64


def an_event(topic, event=None, at=0.0, body=None):
    envelope = types_pb2.Envelope(topic=topic)
    envelope.timestamp.FromNanoseconds(int(at * 1e9))
    envelope.event.value = event.SerializeToString() if event is not None else body or b""
    return envelope


def prepare(chain, at=0.0):
    return an_event("/snapshot/prepare", happenings_pb2.SnapshotPrepare(key=f"extract-1-x {chain}"), at)


def commit(chain, at=0.0, snapshotter="overlayfs"):
    event = happenings_pb2.SnapshotCommit(key=f"extract-1-x {chain}", name=chain, snapshotter=snapshotter)
    return an_event("/snapshot/commit", event, at)


def remove(key, snapshotter="overlayfs"):
    return an_event("/snapshot/remove", happenings_pb2.SnapshotRemove(key=key, snapshotter=snapshotter))


@pytest.fixture
def ledger():
    """One whose first look is over."""
    ledger = ContainerdEventLog()
    assert (set(EVERYTHING), []) == ledger.take()
    return ledger


@pytest.mark.parametrize(
    ("event", "stale", "changes"),
    [
        pytest.param(an_event("/images/create"), {IMAGES, CONTENTS}, [], id="an image has a name"),
        pytest.param(an_event("/images/delete"), {IMAGES, CONTENTS}, [], id="an image loses a name"),
        pytest.param(prepare(CHAIN), set(), [], id="a layer begins to be unpacked"),
        pytest.param(
            commit(CHAIN), set(), [RuntimeSnapshotChange("overlayfs", CHAIN, there=True)], id="a layer is unpacked"
        ),
        pytest.param(
            remove(CHAIN), set(), [RuntimeSnapshotChange("overlayfs", CHAIN, there=False)], id="a layer is gone"
        ),
        pytest.param(commit(CHAIN, snapshotter=""), {SNAPSHOTS}, [], id="a layer is unpacked, nobody says by whom"),
        pytest.param(remove(CHAIN, snapshotter=""), {SNAPSHOTS}, [], id="a layer is gone, nobody says where"),
    ],
)
def test_an_event_says_what_to_ask_for(ledger, event, stale, changes):
    assert ledger.enter(event)
    assert (stale, changes) == ledger.take()
    assert (set(), []) == ledger.take()


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(
            an_event("/snapshot/prepare", happenings_pb2.SnapshotPrepare(key="a container")), id="a container starts"
        ),
        pytest.param(
            an_event("/snapshot/commit", happenings_pb2.SnapshotCommit(key="a", name="b")), id="a container is kept"
        ),
        pytest.param(remove("a container"), id="a container ends"),
        pytest.param(an_event("/content/delete"), id="a blob is gone"),
        pytest.param(an_event("/tasks/oom"), id="something else"),
    ],
)
def test_what_containers_do_is_no_reason_to_look(ledger, event):
    assert not ledger.enter(event)
    assert (set(), []) == ledger.take()


def test_garbage_means_that_everything_may_have_changed(ledger):
    assert ledger.enter(an_event("/snapshot/commit", body=b"\xff\xff\xff"))
    assert (set(EVERYTHING), []) == ledger.take()


def test_a_gap_means_that_everything_may_have_changed(ledger):
    ledger.enter(commit(CHAIN))
    ledger.missed()

    assert (set(EVERYTHING), []) == ledger.take()


def test_where_nobody_looks_for_long_everything_is_asked_for(ledger):
    for number in range(CHANGE_LIMIT + 1):
        ledger.enter(commit(f"sha256:{number:064x}"))
    stale, changes = ledger.take()

    assert {SNAPSHOTS} == stale
    assert CHANGE_LIMIT == len(changes)


def test_unpacking_lasts_from_its_preparation_to_its_commit(ledger):
    ledger.enter(prepare(CHAIN, at=10.0))
    ledger.enter(commit(CHAIN, at=12.0))

    assert {CHAIN: UnpackSpan(10.0, 12.0)} == ledger.spans


def test_a_layer_that_was_prepared_early_waits_for_the_one_below(ledger):
    """All are prepared at once where layers are unpacked side by side; commits stay in order."""
    ledger.enter(prepare(CHAIN, at=10.0))
    ledger.enter(prepare(ABOVE, at=10.1))
    ledger.enter(commit(CHAIN, at=12.0))
    ledger.enter(commit(ABOVE, at=13.0))

    assert UnpackSpan(12.0, 13.0) == ledger.spans[ABOVE]


def test_a_commit_whose_beginning_nobody_saw_has_no_length(ledger):
    ledger.enter(commit(CHAIN, at=12.0))

    assert {} == ledger.spans


def test_a_blob_says_when_it_was_complete_and_how_large_it_is(ledger):
    assert ledger.enter(an_event("/content/create", happenings_pb2.ContentCreate(digest=BLOB, size=5), at=7.0))

    assert {BLOB: 7.0} == ledger.created
    assert [(BLOB, 5, 7.0)] == list(ledger.downloaded())
    assert [] == list(ledger.downloaded())


def test_more_blobs_than_times_are_kept_of_are_no_trouble(ledger):
    """Between two looks; and then the store says of another one when it came, for which an old one is forgotten."""
    for number in range(REMEMBERED):
        blob = happenings_pb2.ContentCreate(digest=f"sha256:{number:064x}", size=5)
        ledger.enter(an_event("/content/create", blob, at=7.0))
    ledger.complete(BLOB, 8.0)

    assert [f"sha256:{number:064x}" for number in range(1, REMEMBERED)] == [one for one, _, _ in ledger.downloaded()]


def test_unpacking_that_is_broken_off_is_written_down(ledger):
    assert ledger.enter(remove(f"extract-1-x {CHAIN}"))

    assert {CHAIN} == ledger.given_up


def test_only_the_latest_times_are_kept(ledger):
    for number in range(REMEMBERED + 10):
        chain = f"sha256:{number:064x}"
        ledger.enter(prepare(chain, at=float(number)))
        ledger.enter(commit(chain, at=number + 0.5))
        ledger.enter(an_event("/content/create", happenings_pb2.ContentCreate(digest=chain, size=1), at=float(number)))

    assert REMEMBERED == len(ledger.prepared) == len(ledger.spans) == len(ledger.created) == len(ledger.sizes)
    assert f"sha256:{REMEMBERED + 9:064x}" in ledger.spans
