"""
Takes from this process what a reader of a runtime never needs: networks, other processes, other programs.

The runtime's socket is as good as root on the node. Whoever finds a hole in the reader shall not be able to carry anything
away from there, so before the runtime is opened the kernel is told, for this process and all its threads, once and for all:

    socket, socketpair               only of the family AF_UNIX
    ptrace, process_vm_*,            not at all: other processes, and what they have open, are none of our business
    pidfd_getfd
    execve, execveat                 not at all: no other program is started
    io_uring_*                       not at all: it would open sockets past this filter
    calls of other machines (i386, x32, arm)    end the process: numbers mean something else there

It is no wall around the files of the same user, of which the memory of a process is one (/proc/PID/mem): what the reader
must not see must not be there to be seen, as in a container of its own. And whoever runs code here has the runtime's socket.

What is refused answers EPERM. The filter is classic BPF, as seccomp(2) has it, and needs no right: only the promise never
to gain any (no_new_privs).
"""

import ctypes
import errno
import os
import platform
import struct
from typing import Final

import msgspec

from lamina.model.errors import LaminaError

AF_UNIX: Final = 1

PR_SET_NO_NEW_PRIVS: Final = 38
SECCOMP_SET_MODE_FILTER: Final = 1
SECCOMP_FILTER_FLAG_TSYNC: Final = 1
"""All threads at once; a library may have started some."""

ALLOW: Final = 0x7FFF0000
REFUSE: Final = 0x00050000 | errno.EPERM
KILL: Final = 0x80000000

# Classic BPF: load a word, compare (jump over so many instructions if so, so many if not), return.
LOAD: Final = 0x20
IF_EQUAL: Final = 0x15
IF_AT_LEAST: Final = 0x35
RETURN: Final = 0x06

# Offsets in struct seccomp_data; both machines are little-endian, so the low half of an argument comes first.
NUMBER_AT: Final = 0
MACHINE_AT: Final = 4
FAMILY_AT: Final = 16

X32: Final = 0x40000000
"""The bit that numbers of the x32 calls have."""


class SeccompArchitecture(msgspec.Struct, frozen=True):
    """The numbers of one kind of processor (asm/unistd.h, linux/audit.h)."""

    audit: int
    seccomp: int
    families: tuple[int, ...]
    """socket, socketpair."""
    forbidden: tuple[int, ...]
    """ptrace, process_vm_readv, process_vm_writev, execve, execveat; the rest is the same everywhere."""


EVERYWHERE: Final = (425, 426, 427, 438)
"""io_uring_setup, io_uring_enter, io_uring_register, pidfd_getfd."""
SECCOMP_ARCHITECTURES: Final = {
    "x86_64": SeccompArchitecture(0xC000003E, 317, (41, 53), (101, 310, 311, 59, 322)),
    "aarch64": SeccompArchitecture(0xC00000B7, 277, (198, 199), (117, 270, 271, 221, 281)),
}


class ConfinementError(LaminaError):
    """The kernel did not take the filter."""

    exit_code = 1

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"the reader cannot be confined: {self.problem}"


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def confine() -> bool:
    """Confine this process; False on a machine whose numbers are not known here. Raises `ConfinementError`."""
    machine = SECCOMP_ARCHITECTURES.get(platform.machine())
    if machine is None:
        return False
    instructions = program(machine)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0))):
        raise ConfinementError(f"no_new_privs was refused ({os.strerror(ctypes.get_errno())})")
    filter_ = _Program(len(instructions) // 8, instructions)
    done = libc.syscall(
        ctypes.c_long(machine.seccomp),
        ctypes.c_ulong(SECCOMP_SET_MODE_FILTER),
        ctypes.c_ulong(SECCOMP_FILTER_FLAG_TSYNC),
        ctypes.byref(filter_),
    )
    if done:
        why = os.strerror(ctypes.get_errno()) if done < 0 else f"thread {done} did not follow"
        raise ConfinementError(f"seccomp was refused ({why}); does the kernel have it, and the pod's profile allow it?")
    return True


def program(machine: SeccompArchitecture) -> bytes:
    """Write the filter for one kind of processor."""
    lines = [
        (LOAD, 0, 0, MACHINE_AT),
        (IF_EQUAL, 1, 0, machine.audit),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER_AT),
        (IF_AT_LEAST, 0, 1, X32),
        (RETURN, 0, 0, KILL),
    ]
    for number in (*machine.forbidden, *EVERYWHERE):
        lines += [(IF_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
    for number in machine.families:
        # The kernel takes a family for an int, so only its low half counts.
        lines += [
            (IF_EQUAL, 0, 4, number),
            (LOAD, 0, 0, FAMILY_AT),
            (IF_EQUAL, 1, 0, AF_UNIX),
            (RETURN, 0, 0, REFUSE),
            (RETURN, 0, 0, ALLOW),
        ]
    lines.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in lines)
