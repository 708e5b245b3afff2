"""The log of finished incarnations: one line each, in files of a limited size, on disks that fail."""

import asyncio
import errno
from pathlib import Path

import pytest

from lamina.model.errors import InputError
from lamina.services.scheduler.qos.qos_log import AFTER_FAILURE, QosLog, QosLogSettings
from tests.unit.qos.qos_lives import Cluster, promised
from tests.unit.services.fakes import leaping


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    """On a loop that skips waiting times, work in a thread would take longer than any time-out."""

    async def inline(function, *arguments):
        return function(*arguments)

    monkeypatch.setattr(asyncio, "to_thread", inline)


def finished(*pods: str) -> Cluster:
    """A cluster in which these pods ran for 90 s and were evicted."""
    cluster = Cluster()
    cluster.create(0, *pods, promise=promised(0.5))
    cluster.bind(10, *pods)
    cluster.evict(100, *pods)
    return cluster


def written(path: Path) -> list[str]:
    return [line.split(",")[1] for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_finished_incarnation_is_one_line(tmp_path):
    cluster = finished("a", "b")
    log = QosLog(QosLogSettings(tmp_path / "metrics.log"), lambda: cluster.engine)

    leaping(log.finish())
    leaping(log.finish())

    lines = (tmp_path / "metrics.log").read_text(encoding="utf-8").splitlines()
    assert "100,a,web,0.5,0,average,0,10000,0,90000,false,0.900000,+Inf,20000,0,180000,0" == lines[0]
    assert ["a", "b"] == written(tmp_path / "metrics.log")


def test_a_full_file_is_renamed_and_the_oldest_one_removed(tmp_path):
    path = tmp_path / "metrics.log"
    log = QosLog(QosLogSettings(path, file_bytes=100, files=3), lambda: finished().engine)

    for pod in ("a", "b", "c", "d"):
        # One line has about 80 characters, two fill a file.
        log.write(list(finished(pod, f"{pod}2").engine.notes.finished))

    assert not path.exists()
    assert ["d", "d2"] == written(tmp_path / "metrics.log.1")
    assert ["c", "c2"] == written(tmp_path / "metrics.log.2")
    assert 2 == len(list(tmp_path.iterdir()))


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        pytest.param("missing/metrics.log", "No such file or directory", id="no such folder"),
        pytest.param(".", "Is a directory", id="a folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_an_error_at_the_start(tmp_path, path, problem):
    with pytest.raises(InputError, match="--qos-log: cannot write") as error:
        QosLog(QosLogSettings(tmp_path / path), lambda: finished().engine)

    assert problem in str(error.value)
    assert 1 == len(str(error.value).splitlines())


def test_a_full_disk_is_one_warning_and_writing_goes_on_later(tmp_path, monkeypatch, caplog):
    path = tmp_path / "metrics.log"
    cluster = finished("a")
    log = QosLog(QosLogSettings(path), lambda: cluster.engine)
    write = log.write

    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def story() -> None:
        running = asyncio.create_task(log.run())
        monkeypatch.setattr(log, "write", full)
        await asyncio.sleep(1)
        cluster.engine.notes.finished.extend(finished("b").engine.notes.finished)
        await asyncio.sleep(2 * AFTER_FAILURE)
        monkeypatch.setattr(log, "write", write)
        cluster.engine.notes.finished.extend(finished("c").engine.notes.finished)
        await asyncio.sleep(2 * AFTER_FAILURE)
        running.cancel()

    leaping(story())

    assert [
        f"QoS log not written, retrying every 30 s: {path}: No space left on device",
        f"QoS log is written again, 2 lines are lost: {path}",
    ] == [record.getMessage() for record in caplog.records]
    assert ["c"] == written(path)


def test_lines_that_nothing_takes_are_bounded():
    cluster = finished()
    for number in range(5000):
        cluster.create(number, f"p{number}", promise=promised(0.5))
        cluster.evict(number + 0.5, f"p{number}")

    assert 4096 == len(cluster.engine.notes.finished)
    assert "p4999" == cluster.engine.notes.finished[-1].pod
