"""One heap for all threads, where the C library knows how."""

import platform
import subprocess
import sys

import pytest

# Many threads, each of which asks the C library for memory; arenas other than the first are 64 MiB of addresses each.
CROWD = """
import ctypes, sys, threading
from lamina.services.node_agent.malloc_limits import limit_malloc

assert limit_malloc() if sys.argv[1] == "frugal" else True
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
together = threading.Barrier(8)

def work():
    together.wait()
    for _ in range(100):
        libc.malloc(ctypes.c_size_t(1000))
    together.wait()

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmSize")))
"""


def size(how: str) -> int:
    """Kibibytes of addresses that a crowd of threads takes."""
    command = [sys.executable, "-c", CROWD, how]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's own")
def test_threads_share_one_heap():
    assert size("frugal") < size("lavish") - 2 * 64 * 1024
