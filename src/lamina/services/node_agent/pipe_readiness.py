"""Waits until a pipe can be read or written without waiting."""

import asyncio


async def wait_readable(pipe: int) -> None:
    """Wait until there is something to read, or whoever wrote has hung up."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(pipe, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(pipe)


async def wait_writable(pipe: int) -> None:
    """Wait until there is room, or nobody reads any more."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(pipe, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(pipe)
