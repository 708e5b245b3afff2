"""Confinement: what a reader of a runtime never needs is taken from it, and what it needs is not."""

import errno
import json
import struct
import subprocess
import sys

import pytest

from lamina.services.node_agent.confinement import ALLOW, KILL, REFUSE, SECCOMP_ARCHITECTURES, X32, program

# Runs after the confinement, in a process of its own: there is no way back.
PRELUDE = """
import ctypes, errno, json, os, socket, sys, threading
from lamina.services.node_agent.confinement import confine

def tried(deed):
    try:
        deed()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"

def call(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)) < 0:
        raise OSError(ctypes.get_errno(), "x")
"""
ON_X86 = pytest.mark.skipif("x86_64" != __import__("platform").machine(), reason="numbers of x86_64")


def confined(words: str, *, before: str = "") -> object:
    """What a confined process finds out; each of *words* is an expression."""
    code = f"{PRELUDE}\n{before}\nassert confine()\nprint(json.dumps([{words}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG"])
def test_a_socket_of_another_family_is_refused(family):
    assert ["EPERM", "EPERM"] == confined(
        f"tried(lambda: socket.socket(socket.{family})),"
        f"tried(lambda: socket.socketpair(socket.{family}, socket.SOCK_DGRAM))"
    )


def test_unix_sockets_work_and_so_does_everything_a_program_needs():
    assert ["done", "done", "done", "done"] == confined(
        "tried(lambda: socket.socket(socket.AF_UNIX)), tried(socket.socketpair), tried(lambda: open('/proc/self/maps').read()),"
        "tried(lambda: threading.Thread(target=int).start())"
    )


def test_no_other_program_is_started():
    assert ["EPERM"] == confined("tried(lambda: os.execv('/bin/true', ['true']))")


def test_threads_that_run_already_are_confined_too():
    before = """
go, found = threading.Event(), []
def later():
    go.wait()
    found.append(tried(lambda: socket.socket(socket.AF_INET)))
thread = threading.Thread(target=later)
thread.start()
"""
    assert ["EPERM"] == confined("(go.set(), thread.join(), found)[2][0]", before=before)


@ON_X86
@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("ptrace", 101),
        ("process_vm_readv", 310),
        ("process_vm_writev", 311),
        ("execveat", 322),
        ("io_uring_setup", 425),
        ("io_uring_enter", 426),
        ("io_uring_register", 427),
        ("pidfd_getfd", 438),
    ],
)
def test_what_reaches_into_other_processes_or_past_the_filter_is_refused(name, number):
    assert ["EPERM"] == confined(f"tried(lambda: call({number}, 0, 0, 0, 0, 0))")


@ON_X86
def test_calls_of_another_machine_end_the_process():
    code = f"{PRELUDE}\nassert confine()\ncall({X32} | 39)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)

    assert -31 == done.returncode  # SIGSYS


def test_confining_twice_does_no_harm():
    assert [True] == confined("confine()")


@pytest.mark.needs("grpc")
def test_grpc_works_in_confinement(tmp_path):
    """It asks for an IPv6 socket when it starts; a refusal is an answer."""
    words = f"""ask({str(tmp_path / "none.sock")!r})"""
    before = """
def ask(path):
    import asyncio, grpc
    async def question():
        channel = grpc.aio.insecure_channel("unix://" + path, options=[("grpc.default_authority", "localhost")])
        try:
            await channel.unary_unary("/a/b")(b"", timeout=5)
        except grpc.aio.AioRpcError as error:
            return error.code().name
        finally:
            await channel.close()
    return asyncio.run(question())
"""
    assert ["UNAVAILABLE"] == confined(words, before=before)


# -------------------------------------------------------------------------------------------------------------- the filter


def judged(machine: str, number: int, family: int = 0, audit: int | None = None) -> int:
    """What the filter answers to a call: a small BPF machine of our own."""
    found = SECCOMP_ARCHITECTURES[machine]
    data = struct.pack("<iI", number, found.audit if audit is None else audit) + bytes(8) + struct.pack("<Q", family)
    code = [struct.unpack_from("<HBBI", program(found), at) for at in range(0, len(program(found)), 8)]
    at = held = 0
    while True:
        kind, yes, no, value = code[at]
        at += 1
        match kind:
            case 0x20:
                held = struct.unpack_from("<I", data, value)[0]
            case 0x15:
                at += yes if held == value else no
            case 0x35:
                at += yes if held >= value else no
            case _:
                return int(value)


@pytest.mark.parametrize("machine", SECCOMP_ARCHITECTURES)
def test_the_filter_judges_alike_on_every_machine(machine):
    found = SECCOMP_ARCHITECTURES[machine]
    for number in found.families:
        assert [ALLOW, REFUSE, REFUSE, REFUSE] == [judged(machine, number, family) for family in (1, 2, 10, 16)]
        # The kernel looks at the low half only.
        assert [ALLOW, REFUSE] == [judged(machine, number, family) for family in ((7 << 32) | 1, (1 << 32) | 2)]
    assert {REFUSE} == {judged(machine, number) for number in (*found.forbidden, 425, 426, 427, 438)}
    others = set(range(500)) - {*found.families, *found.forbidden, 425, 426, 427, 438}
    assert {ALLOW} == {judged(machine, number) for number in others}
    assert [KILL, KILL] == [judged(machine, 1, audit=0x40000003), judged(machine, X32 | 1)]


def test_what_is_refused_is_not_permitted():
    assert errno.EPERM == REFUSE & 0xFFFF


def test_a_machine_whose_numbers_are_not_known_is_told(monkeypatch, caplog):
    import logging
    import platform

    from lamina.services.node_agent import wiring

    logging.getLogger("lamina").propagate = True
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    wiring.confined()

    assert ["reader not confined: no seccomp filter for this architecture"] == caplog.messages
