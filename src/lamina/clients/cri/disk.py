"""How large the file system is that a runtime keeps images on."""

import os
from pathlib import Path


def room(folder: Path | None) -> tuple[int, int]:
    """Bytes of the file system of *folder*, and how many of them are free for ordinary users; 0 and 0: not known."""
    if folder is None:
        return 0, 0
    try:
        answer = os.statvfs(folder)
    except OSError:
        return 0, 0
    return answer.f_blocks * answer.f_frsize, answer.f_bavail * answer.f_frsize
