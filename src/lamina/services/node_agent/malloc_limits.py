"""
Memory limits of a process that needs much memory at its start and little later.

glibc gives each thread a heap of its own, and memory of the first inventory would stay with the process. So there is
one heap, and free memory at its end is returned. With another C library nothing is changed.
"""

import ctypes
from typing import Final

M_TRIM_THRESHOLD: Final = -1
M_ARENA_MAX: Final = -8
KEPT: Final = 64 * 1024
"""Bytes at the end of the heap that are kept."""


def limit_malloc() -> bool:
    """Use one heap for all threads; call before any thread starts. Return whether the C library supports it."""
    choose = getattr(ctypes.CDLL(None), "mallopt", None)
    return choose is not None and all([choose(M_ARENA_MAX, 1), choose(M_TRIM_THRESHOLD, KEPT)])
