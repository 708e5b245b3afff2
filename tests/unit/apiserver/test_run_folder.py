"""Temporary folders of façades."""

import os
import subprocess
import sys

import pytest

from lamina.apiserver.run_folder import LOCK, PREFIX, RunFolder, remove_abandoned

KILLED = """
import os, signal
from lamina.apiserver.run_folder import RunFolder
folder = RunFolder()
(folder.path / "kubeconfig").write_text("x")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def parent(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_the_folder_of_a_killed_process_is_removed_by_the_next_one(parent):
    subprocess.run([sys.executable, "-c", KILLED], env={**os.environ, "TMPDIR": str(parent)}, check=False)
    assert 1 == len(list(parent.iterdir()))

    mine = RunFolder()
    assert [mine.path] == list(parent.iterdir())


def test_a_folder_in_use_stays_and_is_removed_at_its_end(parent):
    first, second = RunFolder(), RunFolder()
    assert {first.path, second.path} == set(parent.iterdir())
    first.remove()
    first.remove()
    assert [second.path] == list(parent.iterdir())


def test_what_is_not_a_folder_of_a_facade_stays(parent):
    for name in (f"{PREFIX}new", "other"):
        (parent / name).mkdir()
    (parent / "other" / LOCK).touch()
    (parent / f"{PREFIX}file").touch()
    mine = parent / "mine"
    mine.mkdir()
    (mine / LOCK).touch()
    (parent / f"{PREFIX}link").symlink_to(mine)
    before = set(parent.rglob("*"))
    remove_abandoned(parent)
    assert before == set(parent.rglob("*"))
