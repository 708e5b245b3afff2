"""
One run of somebody else's program: what it prints, within a time and a size.

Credential plugins of clusters and credential helpers of registries are started the same way: no shell, a session of its
own, so that its children end with it, and no more of its output than was asked for.
"""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec


class ProgramResult(msgspec.Struct, frozen=True):
    """What came of a run."""

    code: int
    printed: bytes
    told: bytes
    """On its standard error."""

    def __repr__(self) -> str:
        # What such programs print is secret.
        return f"Ran(code={self.code}, ...)"


async def run(
    command: Sequence[str],
    *,
    patience: float,
    limit: int,
    said: bytes = b"",
    environment: Mapping[str, str] | None = None,
) -> ProgramResult:
    """
    Run a program that is told *said* on its standard input.

    Raises OSError when it cannot be started, TimeoutError when it is not done within *patience* seconds, and ValueError
    when it prints more than *limit* bytes; it is ended then.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE if said else asyncio.subprocess.DEVNULL,
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
                process.stdin.write(said)
                with suppress(ConnectionError):  # one that does not want to know has closed it
                    await process.stdin.drain()
                process.stdin.close()
            printed, told = await asyncio.gather(_read(process.stdout, limit), _read(process.stderr, limit))
            code = await process.wait()
    finally:
        if process.returncode is None:
            # Its children too: some are scripts that start another.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        # asyncio waits for the pipes as well, which others may hold open, and offers no other way to close them.
        process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
        await process.wait()
    return ProgramResult(code, printed, told)


async def _read(stream: asyncio.StreamReader, limit: int) -> bytes:
    """Read all, up to a bound."""
    pieces = bytearray()
    while piece := await stream.read(64 * 1024):
        pieces += piece
        if len(pieces) > limit:
            raise ValueError(f"it printed more than {limit // 1024} KiB")
    return bytes(pieces)
