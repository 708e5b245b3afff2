"""Files of a folder that is not ours."""

import os
import time

import pytest

from lamina.clients.cri.storage import store_files
from lamina.clients.cri.storage.store_files import UnsettledFileError, UnusableFileError
from tests.unit.clients.cri.storage.written import put


@pytest.fixture
def within(tmp_path):
    with store_files.folder(str(tmp_path)) as descriptor:
        yield descriptor


def test_a_file_at_rest_is_read_whole(tmp_path, within):
    put(tmp_path / "list", b"abc")

    assert b"abc" == store_files.read("list", within, 3)


def test_a_file_that_was_written_just_now_is_left_to_rest_first(tmp_path, within, monkeypatch):
    """Two writes of one tick of the kernel's clock leave the same stamp."""
    (tmp_path / "list").write_bytes(b"abc")
    written = (tmp_path / "list").stat().st_mtime_ns
    rests: list[float] = []
    monkeypatch.setattr(time, "time_ns", lambda: written + 5_000_000)
    monkeypatch.setattr(time, "sleep", rests.append)

    assert b"abc" == store_files.read("list", within, 10)
    # It is 5 ms old.
    assert [pytest.approx(store_files.REST - 0.005)] == rests


def test_a_file_that_changes_while_it_rests_is_not_taken(tmp_path, within, monkeypatch):
    path = tmp_path / "list"
    path.write_bytes(b"abc")
    monkeypatch.setattr(time, "sleep", lambda seconds: os.utime(path, (1, 1)))

    with pytest.raises(UnsettledFileError, match="list is being written"):
        store_files.read("list", within, 10)


def test_a_file_that_is_replaced_by_another_was_whole(tmp_path, within, monkeypatch):
    (tmp_path / "list").write_bytes(b"abc")
    monkeypatch.setattr(time, "sleep", lambda seconds: put(tmp_path / "list", b"other"))

    assert b"abc" == store_files.read("list", within, 10)


def test_a_file_of_the_future_is_taken(tmp_path, within):
    """A clock that was set back must not make a store unreadable."""
    put(tmp_path / "list", b"abc")
    os.utime(tmp_path / "list", (4e9, 4e9))

    assert b"abc" == store_files.read("list", within, 3)


def test_more_bytes_than_allowed_are_not_read(tmp_path, within):
    put(tmp_path / "list", b"abcd")

    with pytest.raises(UnusableFileError, match="list has 4 bytes, more than the limit of 3"):
        store_files.read("list", within, 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(os.mkfifo, "is not a regular file", id="pipe"),
        pytest.param(os.mkdir, "is not a regular file", id="folder"),
        pytest.param(
            lambda path: path.symlink_to("/etc/hostname"), "is a symbolic link, and links are not followed", id="link"
        ),
    ],
)
def test_nothing_but_a_regular_file_is_read(tmp_path, within, make, words):
    make(tmp_path / "list")

    with pytest.raises(UnusableFileError, match=words) as caught:
        store_files.read("list", within, 10)
    assert not isinstance(caught.value, UnsettledFileError)


def test_a_folder_that_is_a_link_is_not_entered(tmp_path, within):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with pytest.raises(OSError, match=r"directory|symbolic"), store_files.folder("link", within):
        pass


def test_the_outermost_folder_may_be_a_link(tmp_path):
    """Which folder that is, somebody said on purpose."""
    (tmp_path / "real").mkdir()
    put(tmp_path / "real" / "list", b"abc")
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with store_files.folder(str(tmp_path / "link")) as within:
        assert b"abc" == store_files.read("list", within, 3)


def test_a_mark_tells_a_replaced_file_from_the_one_before(tmp_path, within):
    put(tmp_path / "list", b"abc")
    first = store_files.mark("list", within)
    stamp = (tmp_path / "list").stat().st_mtime_ns
    put(tmp_path / "new", b"abd")
    os.utime(tmp_path / "new", ns=(stamp, stamp))
    (tmp_path / "new").rename(tmp_path / "list")

    assert first != store_files.mark("list", within)


def test_a_file_that_is_not_there_has_no_mark(within):
    assert store_files.mark("list", within) is None
