"""
Keeps a process small that starts with much work and then has little.

Threads of libraries each get a heap of their own from the C library, and what the first look needed stays with the process
although nobody needs it again. So there is one heap, and what is free at its end is given back. Where the C library is
another than glibc there is nothing to be done, and nothing is.
"""

import ctypes
from typing import Final

M_TRIM_THRESHOLD: Final = -1
M_ARENA_MAX: Final = -8
KEPT: Final = 64 * 1024
"""Bytes at the end of the heap that need not be given back."""


def limit_malloc() -> bool:
    """Have one heap for all threads, before there are any; whether the C library knows how."""
    choose = getattr(ctypes.CDLL(None), "mallopt", None)
    return choose is not None and all([choose(M_ARENA_MAX, 1), choose(M_TRIM_THRESHOLD, KEPT)])
