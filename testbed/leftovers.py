"""
Ends what a testbed started and clears away what it left, also when the testbed itself can no longer do so.

Every process of a testbed carries its mark in its environment (`LAMINA_TESTBED=<mark>`), and so does what it starts in
turn. That is how they are found again: by `bed.stop`, by `testbed down` in another process and another hour, and by the
guard, a process that outlives the driver for a moment and cleans up when the driver was killed. A process is signalled
through a handle that was opened before its mark was read, so a number that the kernel gave to somebody else meanwhile
is never hit.

Started as a program this file is the guard, so it needs nothing but the standard library:

    leftovers.py <mark> <folder> <pid of the driver>      (a line on its standard input lets it go)
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
# How long killed processes may take to vanish; one that waits for a disk cannot be hurried.
PATIENCE = 10.0
MNT_DETACH = 2


def clear(mark: str, folder: Path) -> None:
    """End every process of the testbed *mark*; give *folder* back, with what is mounted in it."""
    groups = end(mark)
    remove_control_groups(groups)
    unmount(folder)
    remove_outside(folder)
    shutil.rmtree(folder, ignore_errors=True)


def end(mark: str) -> set[str]:
    """Kill every process of the testbed *mark* and all they started; the answer is the control groups they were in."""
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
        # What is killed may have been starting something: look again until nobody is left.
        if not found:
            break
        time.sleep(0.02)
    return groups


def members(mark: str) -> Iterator[tuple[int, int]]:
    """Every process of the testbed *mark* that runs: its number, and a handle that is good until the next one."""
    marked = f"{MARK}={mark}".encode()
    pids = [int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal()]
    parents = {pid: parent for pid in pids if (parent := parent_of(pid)) is not None}
    ours: set[int] = set()
    for pid in sorted(parents, key=lambda pid: started(pid) or 0):
        with contextlib.suppress(OSError), handle_of(pid) as handle:
            # A container's own processes have an environment of their own, but a shim of ours as their parent.
            if pid != os.getpid() and (parents[pid] in ours or is_marked(pid, marked)):
                ours.add(pid)
                if state(pid) not in {None, "Z"}:
                    yield pid, handle


@contextlib.contextmanager
def handle_of(pid: int) -> Iterator[int]:
    """A handle of a process; it stays with this process even when its number is given away again."""
    handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        os.close(handle)


def is_marked(pid: int, marked: bytes) -> bool:
    """Whether a process was started with this entry in its environment."""
    return marked in (PROC / str(pid) / "environ").read_bytes().split(b"\0")


def stat(pid: int) -> list[str]:
    """What the kernel tells about a process, from its state on; empty when there is none."""
    try:
        line = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    # The name stands in parentheses and may hold any character, parentheses included.
    return line.rpartition(")")[2].split()


def state(pid: int) -> str | None:
    """A process's state as one letter; None when there is none."""
    return next(iter(stat(pid)), None)


def parent_of(pid: int) -> int | None:
    """The parent of a process; None when there is no such process."""
    fields = stat(pid)
    return int(fields[1]) if fields else None


def started(pid: int) -> int | None:
    """When a process was started, in ticks since the machine was; None when there is none."""
    fields = stat(pid)
    return int(fields[19]) if fields else None


def control_groups(pid: int) -> set[str]:
    """The control groups a process is in, as `controllers:path`."""
    lines = (PROC / str(pid) / "cgroup").read_text(encoding="utf-8").splitlines()
    return {line.partition(":")[2] for line in lines}


def remove_control_groups(groups: set[str]) -> None:
    """Remove the containers' control groups, which are empty now."""
    for group in groups:
        controllers, _, path = group.partition(":")
        # Only what containerd makes for containers; its own and ours were there before.
        if not path.startswith("/k8s.io/"):
            continue
        # The second version of control groups has no names here; beside the first it is mounted as "unified".
        for root in {controllers, controllers.removeprefix("name="), *(controllers or "unified").split(",")}:
            place = Path(f"/sys/fs/cgroup/{root}{path}")
            # The one above goes with its last container; while it has others, this is refused.
            with contextlib.suppress(OSError):
                place.rmdir()
                place.parent.rmdir()


def remove_outside(folder: Path) -> None:
    """Remove the few things that kubelet and containerd put into places of the machine, whatever they are told."""
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
    # Blanks and the like are written as octal escapes; our folders have none.
    points = [line.split()[4] for line in mounts if line.split()[4].startswith(within)]
    if points:
        libc = ctypes.CDLL(None, use_errno=True)
        for point in sorted(points, key=len, reverse=True):
            libc.umount2(point.encode(), MNT_DETACH)


def guard(mark: str, folder: Path, driver: int) -> None:
    """Wait for the driver's end; unless it said farewell before, clean up in its place."""
    try:
        handle = os.pidfd_open(driver)
    except ProcessLookupError:
        clear(mark, folder)
        return
    # By the handle and not by the end of standard input alone: a child of the driver may have inherited that.
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(0, select.POLLIN)
    for ready, _ in poll.poll():
        if ready == 0 and os.read(0, 1):
            return
    clear(mark, folder)


if __name__ == "__main__":
    # A key pressed in the driver's terminal is for the driver.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    guard(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
