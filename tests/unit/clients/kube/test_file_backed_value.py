"""Files that are replaced while we run."""

import os

import pytest

from lamina.clients.bounded_files import FILE_LIMIT, read_file
from lamina.clients.kube.file_backed_value import FileBackedValue
from lamina.model.errors import InputError
from tests.unit.clients.kube.kubeconfigs import Clock


def joined(contents: list[bytes]) -> bytes:
    if b"half" in contents:
        raise InputError.one("file", "cannot be used")
    return b"+".join(contents)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    return path


def test_a_change_is_seen_when_it_is_time_to_look(file, clock):
    value = FileBackedValue([file, b"fixed", None], joined, every=10.0, clock=clock)
    file.write_bytes(b"two")

    clock.pass_by(9.9)
    assert b"one+fixed+" == value.current()

    clock.pass_by(0.1)
    assert b"two+fixed+" == value.current()


def test_the_value_stays_the_same_object_while_the_bytes_do(file, clock):
    value = FileBackedValue([file], joined, every=10.0, clock=clock)
    first = value.current()
    clock.pass_by(60)
    file.write_bytes(b"one")

    assert value.current() is first


def test_looking_again_does_not_wait(file, clock):
    value = FileBackedValue([file], joined, every=10.0, clock=clock)
    file.write_bytes(b"two")
    value.look_again()

    assert b"two" == value.current()


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda path: path.unlink(), id="missing"),
        pytest.param(lambda path: path.write_bytes(b"half"), id="half written"),
        pytest.param(lambda path: path.write_bytes(b"x" * (FILE_LIMIT + 1)), id="far too large"),
    ],
)
def test_while_a_file_is_being_replaced_the_last_good_value_is_kept_and_the_trouble_counted(file, clock, caplog, spoil):
    value = FileBackedValue([file], joined, every=10.0, clock=clock)
    spoil(file)
    for _ in range(3):
        clock.pass_by(10)
        assert b"one" == value.current()

    assert (3, 1) == (value.troubles, len(caplog.records))

    file.write_bytes(b"two")
    clock.pass_by(10)
    assert b"two" == value.current()


def test_the_first_reading_says_what_is_wrong(tmp_path):
    with pytest.raises(InputError) as caught:
        FileBackedValue([tmp_path / "absent"], joined, every=1.0)

    assert f"{tmp_path / 'absent'}: cannot be read: no such file or directory" == str(caught.value)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(InputError, match="is not a regular file"):
        read_file(tmp_path / "pipe")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"is a directory|regular file"):
        read_file(tmp_path)


def test_what_stands_in_the_configuration_is_never_looked_at_again(clock):
    value = FileBackedValue([b"fixed"], joined, every=1.0, clock=clock)
    clock.pass_by(100)

    assert (b"fixed", 0) == (value.current(), value.troubles)
