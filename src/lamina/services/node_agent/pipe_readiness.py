"""Waits for a non-blocking pipe."""

import asyncio


async def wait_readable(pipe: int) -> None:
    """Wait until there is data to read, or the writer has closed the pipe."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(pipe, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(pipe)


async def wait_writable(pipe: int) -> None:
    """Wait until there is room to write, or the reader has closed the pipe."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(pipe, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(pipe)
