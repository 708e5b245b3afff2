"""Version of kube-scheduler, as the program tells it."""

import asyncio
import contextlib
import re
from typing import Final

from lamina.model.errors import InputError

VERSION_SECONDS: Final = 20.0
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)\S*")


async def program_version(program: str) -> str:
    """Return what ``PROGRAM --version`` prints, such as ``1.36.3``; empty if it tells nothing. Raises InputError."""
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            "--version",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise InputError.one("--scheduler", f"cannot start {program}: {why}; name a program on the PATH") from None
    output = b""
    try:
        async with asyncio.timeout(VERSION_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return parse_version(output.decode("utf-8", "replace"))


def parse_version(text: str) -> str:
    """Return the first version in a text, without the leading v; empty if there is none."""
    found = _VERSION.search(text)
    return "" if found is None else ".".join(found.groups())


def minor_of(version: str) -> int:
    """Return the minor part of a version; 0 if it is unknown."""
    parts = version.split(".")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0
