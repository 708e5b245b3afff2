"""However many connect to the service's own endpoints, few connections are open and a probe is answered."""

import asyncio
import socket

from aiohttp import web

from lamina.services.scheduler.endpoint_server import EndpointServer

ASK = b"GET /livez HTTP/1.1\r\nHost: here\r\n\r\n"
LARGE = 16_000_000
"""Bytes: more than the buffers of the system hold."""


async def opened(listener: EndpointServer) -> int:
    return await listener.open("127.0.0.1", 0)


def an_app() -> web.Application:
    async def livez(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def large(_: web.Request) -> web.Response:
        return web.Response(body=bytes(LARGE))

    app = web.Application()
    app.router.add_get("/livez", livez)
    app.router.add_get("/large", large)
    return app


async def rounds() -> None:
    """Let the event loop do what is due, and what follows from it."""
    for _ in range(10):
        await asyncio.sleep(0)


async def asked(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(ASK)
    line = await reader.readline()
    writer.close()
    return line


async def test_connections_beyond_the_limit_close_the_oldest_and_a_probe_is_answered():
    listener = EndpointServer(an_app(), most=3)
    port = await opened(listener)
    try:
        held = []
        for _ in range(10):
            held.append(await asyncio.open_connection("127.0.0.1", port))
            held[-1][1].write(b"GET /livez")
        # An answer on a further connection comes after all of them were accepted, in order.
        assert b"HTTP/1.1 200 OK\r\n" == await asked(port)
        ended = [await reader.read() for reader, _ in held[:8]]
        assert 8 * [b""] == ended
        assert not any(reader.at_eof() for reader, _ in held[8:])
        for _, writer in held:
            writer.close()
    finally:
        await listener.close()


async def test_connections_that_come_at_once_are_limited_too():
    listener = EndpointServer(an_app(), most=3)
    port = await opened(listener)
    try:
        held = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(20)))
        assert b"HTTP/1.1 200 OK\r\n" == await asked(port)
        assert 3 >= len(listener._runner.server.connections)
        for _, writer in held:
            writer.close()
    finally:
        await listener.close()


async def test_connections_that_were_closed_make_room():
    listener = EndpointServer(an_app(), most=2)
    port = await opened(listener)
    try:
        kept = await asyncio.open_connection("127.0.0.1", port)
        kept[1].write(ASK)
        await kept[0].readline()
        for _ in range(5):
            assert b"HTTP/1.1 200 OK\r\n" == await asked(port)
            while len(listener._runner.server.connections) > 1:
                await asyncio.sleep(0)
        assert not kept[0].at_eof()
        kept[1].close()
    finally:
        await listener.close()


async def unread(listener: EndpointServer, port: int) -> socket.socket:
    """Ask for a large page and read nothing; return when the server waits for the client."""
    before = set(listener._runner.server.connections)
    client = socket.socket()
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", port))
    await loop.sock_sendall(client, b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n")
    while not any(
        one.transport is not None and one.transport.get_write_buffer_size()
        for one in listener._runner.server.connections
        if one not in before
    ):
        await asyncio.sleep(0)
    return client


async def test_clients_that_do_not_read_hold_no_more_connections_than_the_limit():
    listener = EndpointServer(an_app(), most=2)
    port = await opened(listener)
    clients = []
    try:
        for _ in range(6):
            clients.append(await unread(listener, port))
            await rounds()
            assert 2 >= len(listener._runner.server.connections)
        assert b"HTTP/1.1 200 OK\r\n" == await asked(port)
    finally:
        for client in clients:
            client.close()
        await listener.close()


async def test_a_connection_that_aiohttp_closed_and_that_is_not_read_counts_and_is_ended_too():
    listener = EndpointServer(an_app(), most=2)
    port = await opened(listener)
    clients = []
    try:
        for _ in range(6):
            clients.append(await unread(listener, port))
            await rounds()
            listener._runner.server.connections[-1].force_close()
            assert 2 >= len(listener._runner.server.connections)
    finally:
        for client in clients:
            client.close()
        await listener.close()
