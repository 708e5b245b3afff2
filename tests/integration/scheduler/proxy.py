"""
A proxy between a scheduler and the API server that loses what it is told to lose.

It ends TLS on both sides, with the server's own certificate, so that it sees where a request begins and can cut a
connection at the worst moment: when the server has answered a binding and the answer has not been passed on.
Whoever comes through it shows a token; a client certificate would end here.
"""

import asyncio
import contextlib
import random
import ssl
import threading
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from testbed import Testbed, ports

PIECE: Final = 64 * 1024


class Proxy:
    """Listens until the block ends. What it loses is set by its attributes, at any time, from any thread."""

    def __init__(self, bed: Testbed, seed: int = 0) -> None:
        self.port = ports.free()
        self.url = f"https://127.0.0.1:{self.port}"
        self.lose_answers_to = ""
        """Requests that contain this and whose answers may be lost: ``/binding`` or ``POST``; empty loses none."""
        self.lose_share = 1.0
        self.lose_requests = False
        """Lose the request itself instead, before the server sees it."""
        self.hold_watches = False
        """Pass on nothing of what a watch says for as long as this is set; nothing of it is lost."""
        self.lost = self.cuts = self.opened = 0
        self._dice = random.Random(seed)
        upstream = urlsplit(bed.url)
        self._upstream = (upstream.hostname or "", upstream.port or 0)
        folder = bed.site.authority.folder
        self._serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._serving.load_cert_chain(folder / "server.crt", folder / "server.key")
        self._asking = ssl.create_default_context(cafile=str(bed.ca_file))
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def cut(self) -> None:
        """Reset every connection there is."""
        self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        self.cuts += len(self._open)
        for writer in list(self._open):
            writer.transport.abort()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(lambda loop, context: None)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", self.port, ssl=self._serving)
        self._up.set()
        await self._stop.wait()
        server.close()
        self._cut()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self._open.add(writer)
        connection = Connection()
        try:
            host, port = self._upstream
            with contextlib.suppress(OSError, ssl.SSLError):
                there, back = await asyncio.open_connection(host, port, ssl=self._asking)
                try:
                    tasks = [
                        asyncio.create_task(self._requests(reader, back, connection)),
                        asyncio.create_task(self._answers(there, writer, connection)),
                    ]
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
                finally:
                    back.transport.abort()
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _requests(
        self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, connection: "Connection"
    ) -> None:
        while piece := await reader.read(PIECE):
            wanted, line = self.lose_answers_to.encode(), piece.partition(b"\r\n")[0]
            connection.watches |= b"watch=true" in line
            if wanted and wanted in line and not connection.watches and self._dice.random() < self.lose_share:
                self.lost += 1
                if self.lose_requests:
                    return
                connection.loses = True
            back.write(piece)
            await back.drain()

    async def _answers(
        self, there: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: "Connection"
    ) -> None:
        while piece := await there.read(PIECE):
            if connection.loses:
                # The server has done it; nobody will hear of it.
                return
            while connection.watches and self.hold_watches:
                await asyncio.sleep(0.01)
            writer.write(piece)
            await writer.drain()


class Connection:
    """One connection's fate."""

    loses = False
    watches = False
