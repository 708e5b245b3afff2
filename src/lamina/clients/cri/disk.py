"""Size and free space of the file system that holds a runtime's images."""

import os
from pathlib import Path


def room(folder: Path | None) -> tuple[int, int]:
    """Return the bytes of *folder*'s file system and the bytes free for ordinary users; (0, 0) if unknown."""
    if folder is None:
        return 0, 0
    try:
        answer = os.statvfs(folder)
    except OSError:
        return 0, 0
    return answer.f_blocks * answer.f_frsize, answer.f_bavail * answer.f_frsize
