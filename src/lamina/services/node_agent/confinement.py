"""
Seccomp filter of the reader: removes network access, other processes and other programs from it.

Access to the runtime's socket is equivalent to root on the node. An attacker who exploits the reader must not be able
to send data anywhere. So before the reader opens the runtime, it installs this filter for all its threads, permanently:

    socket, socketpair               only of the family AF_UNIX
    ptrace, process_vm_*,            denied: no access to other processes and their open files
    pidfd_getfd
    execve, execveat                 denied: no other program can be started
    io_uring_*                       denied: it would open sockets past this filter
    other architectures (i386, x32, arm)    end the process: call numbers differ there

The filter does not protect files of the same user, which include process memory (/proc/PID/mem). Keep such files out of
reach, with a separate container. An attacker in the reader still has the runtime's socket.

A denied call returns EPERM. The filter is classic BPF, see seccomp(2). It needs no privilege, only no_new_privs.
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
"""Apply to all threads; a library may have started some."""

ALLOW: Final = 0x7FFF0000
REFUSE: Final = 0x00050000 | errno.EPERM
KILL: Final = 0x80000000

# Classic BPF: load a word; compare (with the number of instructions to skip if true, and if false); return.
LOAD: Final = 0x20
IF_EQUAL: Final = 0x15
IF_AT_LEAST: Final = 0x35
RETURN: Final = 0x06

# Offsets in struct seccomp_data. Both architectures are little-endian, so the low half of an argument comes first.
NUMBER_AT: Final = 0
MACHINE_AT: Final = 4
FAMILY_AT: Final = 16

X32: Final = 0x40000000
"""The bit that marks x32 system calls."""


class SeccompArchitecture(msgspec.Struct, frozen=True):
    """System call numbers of one architecture (asm/unistd.h, linux/audit.h)."""

    audit: int
    seccomp: int
    families: tuple[int, ...]
    """socket, socketpair."""
    forbidden: tuple[int, ...]
    """
    ptrace, process_vm_readv, process_vm_writev, execve, execveat; other numbers are the same on all architectures.
    """


EVERYWHERE: Final = (425, 426, 427, 438)
"""io_uring_setup, io_uring_enter, io_uring_register, pidfd_getfd."""
SECCOMP_ARCHITECTURES: Final = {
    "x86_64": SeccompArchitecture(0xC000003E, 317, (41, 53), (101, 310, 311, 59, 322)),
    "aarch64": SeccompArchitecture(0xC00000B7, 277, (198, 199), (117, 270, 271, 221, 281)),
}


class ConfinementError(LaminaError):
    """Raised when the kernel rejects the filter."""

    exit_code = 1

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"the seccomp filter cannot be installed: {self.problem}"


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def confine() -> bool:
    """Confine this process; return False on an unknown architecture. Raises `ConfinementError`."""
    machine = SECCOMP_ARCHITECTURES.get(platform.machine())
    if machine is None:
        return False
    instructions = program(machine)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0))):
        raise ConfinementError(f"no_new_privs was rejected ({os.strerror(ctypes.get_errno())})")
    filter_ = _Program(len(instructions) // 8, instructions)
    done = libc.syscall(
        ctypes.c_long(machine.seccomp),
        ctypes.c_ulong(SECCOMP_SET_MODE_FILTER),
        ctypes.c_ulong(SECCOMP_FILTER_FLAG_TSYNC),
        ctypes.byref(filter_),
    )
    if done:
        why = os.strerror(ctypes.get_errno()) if done < 0 else f"thread {done} did not follow"
        raise ConfinementError(f"seccomp was rejected ({why}); check the kernel's support and the pod's profile")
    return True


def program(machine: SeccompArchitecture) -> bytes:
    """Return the filter program of one architecture."""
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
        # The kernel reads the family as an int, so only the low half matters.
        lines += [
            (IF_EQUAL, 0, 4, number),
            (LOAD, 0, 0, FAMILY_AT),
            (IF_EQUAL, 1, 0, AF_UNIX),
            (RETURN, 0, 0, REFUSE),
            (RETURN, 0, 0, ALLOW),
        ]
    lines.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in lines)
