"""Waits until a source is where a test wants it."""

import asyncio

from lamina.clients.cri.runtime_source import RuntimeSourceError


async def settle(fake):
    """Wait until the source listens."""
    async with asyncio.timeout(60):
        while not fake.listeners:
            await asyncio.sleep(0.01)


async def answered(source):
    """Look until there is an answer."""
    async with asyncio.timeout(10):
        while True:
            try:
                return await source.look()
            except RuntimeSourceError:
                await asyncio.sleep(0.2)
