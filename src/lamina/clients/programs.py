"""
Run an external program with a time limit and an output limit, and return its output.

Exec plugins (Kubernetes) and credential helpers (registries) both run this way. No shell is used. Each program gets its
own session, so that its child processes can be killed with it.
"""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec


class ProgramResult(msgspec.Struct, frozen=True):
    """Exit code and output of a finished program."""

    code: int
    stdout: bytes
    stderr: bytes

    def __repr__(self) -> str:
        # The output of credential programs is secret.
        return f"ProgramResult(code={self.code}, ...)"


async def run(
    command: Sequence[str],
    *,
    patience: float,
    limit: int,
    stdin_data: bytes = b"",
    environment: Mapping[str, str] | None = None,
) -> ProgramResult:
    """
    Run *command*, write *stdin_data* to its standard input, and return its exit code and output.

    Raises OSError when the program cannot be started, TimeoutError after *patience* seconds, and ValueError when it
    prints more than *limit* bytes. In the last two cases the program is killed.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE if stdin_data else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(patience):
            if process.stdin is not None:
                process.stdin.write(stdin_data)
                with suppress(ConnectionError):  # the program may close its standard input unread
                    await process.stdin.drain()
                process.stdin.close()
            stdout, stderr = await asyncio.gather(_read(process.stdout, limit), _read(process.stderr, limit))
            code = await process.wait()
    finally:
        if process.returncode is None:
            # Kill the whole group: some plugins are scripts that start another process.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        # asyncio also waits for the pipes. A grandchild may hold them open, and only the transport can close them.
        process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
        await process.wait()
    return ProgramResult(code, stdout, stderr)


async def _read(stream: asyncio.StreamReader, limit: int) -> bytes:
    """Read to the end; raise ValueError beyond *limit* bytes."""
    pieces = bytearray()
    while piece := await stream.read(64 * 1024):
        pieces += piece
        if len(pieces) > limit:
            raise ValueError(f"it printed more than {limit // 1024} KiB")
    return bytes(pieces)
