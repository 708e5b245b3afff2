"""
Ends all processes of a testbed and removes its files, even after the testbed's own process has ended.

Every process of a testbed carries its mark in its environment (`LAMINA_TESTBED=<mark>`), which its children inherit. By
the mark, `bed.stop`, a later `testbed down` and the guard find them. The guard is a process that outlives the driver
for a moment and cleans up if the driver was killed. A process is signalled through a handle (pidfd) that was opened
before its mark was read, so the signal cannot hit another process that got the same pid meanwhile.

Started as a program, this file is the guard, so it uses the standard library only:

    leftovers.py <mark> <folder> <pid of the driver>      (a line on its standard input dismisses it)
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

MARK = "LAMINA_TESTBED"
PROC = Path("/proc")
CONTAINER_LOGS = Path("/var/log/containers")
SHIM_SOCKETS = Path("/run/containerd/s")
# Time for killed processes to disappear; one that waits for a disk cannot be hurried.
PATIENCE = 10.0
MNT_DETACH = 2


def clear(mark: str, folder: Path) -> None:
    """End every process of the testbed *mark*; unmount and remove *folder*."""
    groups = end(mark)
    remove_control_groups(groups)
    unmount(folder)
    remove_outside(folder)
    shutil.rmtree(folder, ignore_errors=True)


def end(mark: str) -> set[str]:
    """Kill every process of the testbed *mark* and their children; return the control groups they were in."""
    groups: set[str] = set()
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = 0
        for pid, handle in members(mark):
            with contextlib.suppress(OSError):
                groups.update(control_groups(pid))
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            found += 1
        # A killed process may have just started another: repeat until none is left.
        if not found:
            break
        time.sleep(0.02)
    return groups


def members(mark: str) -> Iterator[tuple[int, int]]:
    """Yield every running process of the testbed *mark*: pid and a handle that is valid until the next one."""
    marked = f"{MARK}={mark}".encode()
    pids = [int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal()]
    parents = {pid: parent for pid in pids if (parent := parent_of(pid)) is not None}
    ours: set[int] = set()
    for pid in sorted(parents, key=lambda pid: started(pid) or 0):
        with contextlib.suppress(OSError), handle_of(pid) as handle:
            # A container's processes have their own environment, but one of our shims as their parent.
            if pid != os.getpid() and (parents[pid] in ours or is_marked(pid, marked)):
                ours.add(pid)
                if state(pid) not in {None, "Z"}:
                    yield pid, handle


@contextlib.contextmanager
def handle_of(pid: int) -> Iterator[int]:
    """Yield a handle of a process; it stays valid for this process even if its pid is reused."""
    handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        os.close(handle)


def is_marked(pid: int, marked: bytes) -> bool:
    """Return whether a process was started with this entry in its environment."""
    return marked in (PROC / str(pid) / "environ").read_bytes().split(b"\0")


def stat(pid: int) -> list[str]:
    """Return a process's fields in /proc/PID/stat from the state on; empty if there is no such process."""
    try:
        line = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    # The name is in parentheses and may contain any character, including parentheses.
    return line.rpartition(")")[2].split()


def state(pid: int) -> str | None:
    """Return a process's state as one letter; None if there is no such process."""
    return next(iter(stat(pid)), None)


def parent_of(pid: int) -> int | None:
    """Return the pid of a process's parent; None if there is no such process."""
    fields = stat(pid)
    return int(fields[1]) if fields else None


def started(pid: int) -> int | None:
    """Return when a process was started, in ticks since boot; None if there is no such process."""
    fields = stat(pid)
    return int(fields[19]) if fields else None


def control_groups(pid: int) -> set[str]:
    """Return the control groups of a process, as `controllers:path`."""
    lines = (PROC / str(pid) / "cgroup").read_text(encoding="utf-8").splitlines()
    return {line.partition(":")[2] for line in lines}


def remove_control_groups(groups: set[str]) -> None:
    """Remove the containers' control groups, which are empty now."""
    for group in groups:
        controllers, _, path = group.partition(":")
        # Only the groups that containerd creates for containers; its own and ours existed before.
        if not path.startswith("/k8s.io/"):
            continue
        # cgroup v2 has no controller names here; beside v1 it is mounted as "unified".
        for root in {controllers, controllers.removeprefix("name="), *(controllers or "unified").split(",")}:
            place = Path(f"/sys/fs/cgroup/{root}{path}")
            # The parent is removed with its last container; while it has others, rmdir fails.
            with contextlib.suppress(OSError):
                place.rmdir()
                place.parent.rmdir()


def remove_outside(folder: Path) -> None:
    """Remove the few files that kubelet and containerd write outside the folder, whatever the configuration."""
    for link in CONTAINER_LOGS.glob("*.log"):
        if link.is_symlink() and link.readlink().is_relative_to(folder):
            link.unlink(missing_ok=True)
    for path in folder.glob("nodes/*/state/io.containerd.runtime.v2.task/*/*/bootstrap.json"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            socket = Path(json.loads(path.read_bytes())["address"].removeprefix("unix://"))
            if socket.parent == SHIM_SOCKETS:
                socket.unlink(missing_ok=True)


def unmount(folder: Path) -> None:
    """Unmount everything below *folder*, the deepest first."""
    within = f"{folder.resolve()}/"
    mounts = (PROC / "self" / "mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    # Spaces are written as octal escapes; our folders have none.
    points = [line.split()[4] for line in mounts if line.split()[4].startswith(within)]
    if points:
        libc = ctypes.CDLL(None, use_errno=True)
        for point in sorted(points, key=len, reverse=True):
            libc.umount2(point.encode(), MNT_DETACH)


def guard(mark: str, folder: Path, driver: int) -> None:
    """Wait for the driver's end; clean up unless the driver has dismissed the guard before."""
    try:
        handle = os.pidfd_open(driver)
    except ProcessLookupError:
        clear(mark, folder)
        return
    # Use the handle as well as the end of standard input: a child of the driver may have inherited the input.
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(0, select.POLLIN)
    for ready, _ in poll.poll():
        if ready == 0 and os.read(0, 1):
            return
    clear(mark, folder)


if __name__ == "__main__":
    # Ctrl-C in the driver's terminal is meant for the driver.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    guard(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
