"""Recordings as files: private, limited in size and number, whole or not there; and no secret is in them."""

import asyncio
import logging
import os
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
import zstandard

from lamina.model import events
from lamina.model.errors import InputError
from lamina.model.pod import Container
from lamina.scheduling.config.loader import load
from lamina.services.scheduler.annotation_mask import AnnotationMask
from lamina.services.scheduler.event_ring import Segment
from lamina.services.scheduler.recordings import RecordingFiles, RecordingSettings, RecordingWriter, configuration_text
from lamina.services.scheduler.replayer import replay_recording
from lamina.testing import a_node, a_pod
from lamina.trace.recording import SUFFIX, DecideCall, RecordingError, RecordingHeader, TakenEvents
from lamina.trace.recording_reader import read_recording
from tests.unit.services.scheduler.recorded import REGISTRY, Life

CANARY = "hunter2-correct-horse"


def files_of(life: Life, folder, **limits) -> RecordingFiles:
    return RecordingFiles(RecordingSettings(folder, **limits), life.writer)


def test_a_file_is_private_and_whole(tmp_path):
    """Whatever the process's mask is: other users of the machine cannot read it."""
    life = Life().live(5)
    before = os.umask(0)
    try:
        path = files_of(life, tmp_path / "made" / "here").write(life.ring.recording())
    finally:
        os.umask(before)

    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert 0o700 == stat.S_IMODE(path.parent.stat().st_mode)
    assert [path] == list(path.parent.iterdir())
    assert replay_recording(str(path), read_recording(path), REGISTRY).equal


def test_the_oldest_files_make_room_and_other_files_are_left_alone(tmp_path):
    (tmp_path / f"notes{SUFFIX}").write_text("mine")
    life = Life()
    files = files_of(life, tmp_path, files=3)
    written = [files.write(life.live(1).ring.recording()).name for _ in range(5)]

    assert {*written[2:], f"notes{SUFFIX}"} == {path.name for path in tmp_path.iterdir()}


def test_files_of_processes_before_count_as_well(tmp_path):
    life = Life()
    first = files_of(life, tmp_path, files=2).write(life.ring.recording())
    files = files_of(life.live(3), tmp_path, files=2)
    later = [files.write(life.ring.recording()) for _ in range(2)]

    assert not first.exists()
    assert all(path.exists() for path in later)


def test_a_recording_that_is_too_large_is_not_written(tmp_path):
    life = Life().live(5)
    files = files_of(life, tmp_path, file_bytes=500)

    with pytest.raises(RecordingError, match="--record-size"):
        files.write(life.ring.recording())
    assert [] == list(tmp_path.iterdir())


async def test_what_cannot_be_written_is_logged_and_scheduling_goes_on(tmp_path, caplog):
    life = Life().live(5)
    files = files_of(life, tmp_path, file_bytes=500)
    caplog.set_level(logging.INFO)

    assert None is await files.save(life.ring.recording())
    assert ["recording not written"] == [record.message for record in caplog.records]


async def test_segments_that_come_faster_than_the_disk_writes_are_dropped(tmp_path, caplog):
    life = Life().live(2)
    files = files_of(life, tmp_path)
    for _ in range(6):
        files.put(life.ring.recording())

    assert 2 == sum("dropped" in record.message for record in caplog.records)


@pytest.mark.parametrize(
    "change", [{"priority": 2**70}, {"annotations": {"lamina.dev/x": "\ud800"}}], ids=["number", "text"]
)
async def test_what_cannot_be_encoded_is_logged_and_scheduling_goes_on(tmp_path, caplog, change):
    life = Life()
    life.ring.take(events.PodSeen(msgspec.structs.replace(a_pod("odd"), node_name="n1", **change)))
    files = files_of(life, tmp_path)

    assert None is await files.save(life.ring.recording())
    assert ["recording not written"] == [record.message for record in caplog.records]
    assert caplog.records[0].exc_info
    assert [] == list(tmp_path.iterdir())


async def test_segments_that_wait_are_written_at_the_end_and_the_newest_last(tmp_path):
    life = Life().live(2)
    files = files_of(life, tmp_path)
    files.put(life.ring.recording())
    files.put(life.live(1).ring.recording())
    newest = life.live(1).ring.newest()
    await files.finish(newest, 60.0)
    last = max(tmp_path.iterdir(), key=lambda path: path.name)

    assert 3 == len(list(tmp_path.iterdir()))
    assert len(newest.entries) == sum(isinstance(one, TakenEvents | DecideCall) for one in read_recording(last))


async def test_a_segment_whose_thread_has_not_begun_when_the_service_stops_is_written_at_the_end(tmp_path):
    life = Life().live(2)
    files = files_of(life, tmp_path)
    free = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        asyncio.get_running_loop().set_default_executor(threads)
        busy = asyncio.get_running_loop().run_in_executor(None, free.wait)
        running = asyncio.create_task(files.run())
        files.put(life.ring.recording())
        for _ in range(10):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        free.set()
        await busy
        await files.finish(life.live(1).ring.newest(), 60.0)

    assert 2 == len(list(tmp_path.iterdir()))


async def test_the_end_does_not_wait_for_a_disk_that_is_too_slow(tmp_path, caplog, monkeypatch):
    """What is being written is left before its next piece, what waits is not begun; nothing unfinished remains."""
    life = Life().live(2)
    files = files_of(life, tmp_path)
    begun: list[Segment] = []
    slow = threading.Event()

    def encode(segment: Segment) -> Iterator[bytes]:
        begun.append(segment)
        yield b"first"
        slow.wait()
        yield b"second"

    monkeypatch.setattr(life.writer, "encode", encode)
    files.put(life.ring.recording())
    await files.finish(life.ring.newest(), 0.05)
    slow.set()
    await asyncio.get_running_loop().shutdown_default_executor()

    assert len(begun) <= 1
    assert ["recordings not written, the disk is too slow"] == [record.message for record in caplog.records]
    assert [] == list(tmp_path.iterdir())


def old(path: Path, seconds: float) -> Path:
    """Let a file that was written just now look older."""
    then = path.lstat().st_mtime - seconds
    os.utime(path, (then, then), follow_symlinks=False)
    return path


def test_unfinished_files_of_killed_processes_are_removed(tmp_path):
    """Not those of a process that is still writing, and no file of another name."""
    for name in (".0123abcd-7.part", ".0123abcd.part", ".mine.part", ".89abcdef-1.part"):
        (tmp_path / name).write_bytes(b"")
    for name in (".0123abcd-7.part", ".0123abcd.part", ".mine.part"):
        old(tmp_path / name, 3600)
    files_of(Life(), tmp_path)

    assert {".mine.part", ".89abcdef-1.part"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("kind", ["link", "directory"])
def test_what_is_no_file_but_has_such_a_name_is_left_alone(tmp_path, kind):
    odd = tmp_path / f"lamina-20000101T000000Z-00000000-000001{SUFFIX}"
    if kind == "link":
        odd.symlink_to(tmp_path / "nowhere")
    else:
        odd.mkdir()
    life = Life().live(1)
    files = files_of(life, tmp_path, files=2)
    written = [files.write(life.ring.recording()) for _ in range(4)]

    assert {odd, *written[2:]} == set(tmp_path.iterdir())


def test_the_file_just_written_stays_when_the_clock_was_set_back(tmp_path):
    life = Life().live(1)
    files = files_of(life, tmp_path, files=2)
    first, second = (old(files.write(life.ring.recording()), seconds) for seconds in (-7200, -3600))
    segment = msgspec.structs.replace(life.ring.recording(), started=0.0)
    third = files.write(segment)

    assert {first, third} == set(tmp_path.iterdir())
    assert not second.exists()


def test_a_folder_that_cannot_be_written_to_is_refused_at_the_start(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(InputError, match="--record-dir"):
        files_of(Life(), tmp_path / "file" / "folder")


# -------------------------------------------------------------------------------------------------------------- secrets


def bytes_of(life: Life) -> bytes:
    data = b"".join(life.writer.encode(life.ring.recording()))
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def test_no_secret_is_in_a_recording():
    """Neither in events nor in the snapshot: annotations of pods, nodes and namespaces say nothing but their keys."""
    secret = {
        "kubectl.kubernetes.io/last-applied-configuration": f'{{"env":[{{"name":"PASSWORD","value":"{CANARY}"}}]}}',
        "token": CANARY,
    }
    life = Life()
    life.live(3, annotations=secret)
    life.ring.take(
        events.NodeSeen(msgspec.structs.replace(a_node("n9"), annotations=secret)),
        events.NamespaceSeen("shop", secret),
    )
    # All of it is in the snapshot of a ring that begins now, too: waiting, on its way and placed.
    later = Life()
    later.live(3, annotations=secret)
    later.ring.take(events.NodeSeen(msgspec.structs.replace(a_node("n9"), annotations=secret)))
    later.ring.take(events.NamespaceSeen("shop", secret))
    later.ring.take(events.TimePassed(50.0), events.PodSeen(msgspec.structs.replace(a_pod("q"), annotations=secret)))
    later.ring.decide(1)
    later.ring._segments = [later.ring._begin()]

    for data in (bytes_of(life), bytes_of(later)):
        assert b"last-applied-configuration" in data
        assert b"masked:" in data
        assert CANARY.encode() not in data


def test_neither_credentials_nor_the_names_of_their_files_are_in_a_recording():
    text = f"""
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        clientConnection: {{kubeconfig: /secret/{CANARY}}}
        leaderElection: {{resourceName: {CANARY}}}
        """
    configuration = load(text, "test", REGISTRY)

    assert CANARY not in configuration_text(configuration)
    assert load(configuration_text(configuration), "test", REGISTRY).config.profiles == configuration.config.profiles


def test_what_lamina_reads_in_annotations_stays_readable():
    kept = {"lamina.dev/locality": "off"}
    figures = {"cpu-mean": "0.5", "written-at": "2026-11-18T06:31:55Z"}
    mask = AnnotationMask(b"k" * 32)

    assert kept == mask.pod(msgspec.structs.replace(a_pod("p"), annotations=kept)).annotations
    node = mask.node(msgspec.structs.replace(a_node("n"), annotations={**kept, **figures, "note": "x"})).annotations
    assert {**kept, **figures} == {key: text for key, text in node.items() if key != "note"}
    pod = mask.pod(msgspec.structs.replace(a_pod("p"), annotations=figures)).annotations
    assert all(text.startswith("masked:") for text in pod.values())


def test_the_same_text_has_the_same_code_and_no_two_processes_use_the_same_codes():
    """So a replay sees that an annotation changed, and codes do not lead back to texts."""
    one, other = AnnotationMask(b"a" * 32), AnnotationMask(b"b" * 32)
    pods = [msgspec.structs.replace(a_pod("p"), annotations={"x": text}) for text in ("v", "v", "w")]
    codes = [one.pod(pod).annotations["x"] for pod in pods]

    assert codes[0] == codes[1] != codes[2]
    assert codes[0] != other.pod(pods[0]).annotations["x"]


def test_pods_without_annotations_are_shared_rather_than_copied():
    pod = msgspec.structs.replace(a_pod("p"), containers=(Container("app:1"),))

    assert pod is AnnotationMask(b"a" * 32).pod(pod)


def test_the_header_says_what_ran_and_what_is_lost(tmp_path):
    life = Life().live(1)
    writer = RecordingWriter(life.configuration, "brief", ("Theirs",))
    path = RecordingFiles(RecordingSettings(tmp_path), writer).write(life.ring.recording())
    header = next(read_recording(path))

    assert isinstance(header, RecordingHeader)
    assert ("brief", False, ("Theirs",)) == (header.detail, header.exact, header.lost)
    assert header.lamina
    assert 1000.0 == header.started
