"""Programs of others: what they print, and how they are ended."""

import sys

import pytest

from lamina.clients.programs import run


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


async def test_a_program_is_told_and_tells():
    code = "import sys; print(sys.stdin.read().upper()); print('careful', file=sys.stderr); sys.exit(3)"

    ran = await run(python(code), patience=30, limit=1000, stdin_data=b"word")

    assert (3, b"WORD\n", b"careful\n") == (ran.code, ran.stdout, ran.stderr)
    assert "WORD" not in repr(ran)


async def test_one_that_does_not_listen_is_not_a_mistake():
    ran = await run(python("print('done')"), patience=30, limit=1000, stdin_data=b"x" * 1_000_000)

    assert (0, b"done\n") == (ran.code, ran.stdout)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_one_that_prints_without_end_is_ended(stream):
    with pytest.raises(ValueError, match="it printed more than 64 KiB"):
        await run(python(f"import sys\nwhile True: sys.{stream}.write('x' * 1000)"), patience=30, limit=64 * 1024)


async def test_one_that_hangs_is_ended_with_its_children():
    with pytest.raises(TimeoutError):
        await run(["/bin/sh", "-c", "sleep 3600 & sleep 3600"], patience=0.2, limit=1000)


async def test_one_that_is_not_there_is_said_so():
    with pytest.raises(FileNotFoundError):
        await run(["/nowhere/at/all"], patience=1, limit=1000)
