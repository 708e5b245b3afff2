"""How large a disk is, or that nobody knows."""

import shutil

from lamina.clients.cri import disk


def test_a_folder_tells_the_size_of_its_file_system(tmp_path):
    size, free = disk.room(tmp_path)

    assert shutil.disk_usage(tmp_path).total == size
    assert 0 <= free <= size


def test_what_cannot_be_seen_has_no_size(tmp_path):
    assert (0, 0) == disk.room(tmp_path / "not mounted here")
    assert (0, 0) == disk.room(None)
