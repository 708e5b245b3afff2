"""Certificates of API servers: whom the client believes, and what it says of the others."""

import asyncio
import contextlib
import os
import socket
import ssl

import pytest
import trustme

from lamina.clients.kube import streams
from lamina.clients.kube.errors import UnreachableError
from lamina.clients.kube.transport import KubeClient
from tests.unit.clients.kube.loopback import Answer, Asked, Stub
from tests.unit.clients.kube.visiting import Visit, never, read, saying


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def serving(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


async def test_a_server_is_believed_that_shows_a_certificate_of_the_authority():
    authority = trustme.CA()
    async with Visit(saying(b"{}"), context=serving(authority, "127.0.0.1"), tls=trusting(authority)) as visit:
        assert b"{}" == await visit.client.request("GET", "/x")
        assert [b"{}"] == await read(visit.client)


@pytest.mark.needs("uvloop")
def test_under_the_extenders_event_loop_a_server_with_a_certificate_is_reached_as_well():
    from lamina.serving.event_loop import new_loop

    async def visited() -> bytes:
        authority = trustme.CA()
        async with Visit(saying(b"{}"), context=serving(authority, "127.0.0.1"), tls=trusting(authority)) as visit:
            return await visit.client.request("GET", "/x")

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert b"{}" == runner.run(visited())


@pytest.mark.parametrize(
    ("names", "known", "words"),
    [
        pytest.param(["127.0.0.1"], False, "TLS certificate rejected", id="another authority"),
        pytest.param(["127.0.0.2"], True, "TLS certificate rejected", id="another name"),
    ],
)
async def test_a_certificate_that_is_not_accepted_is_said_so(names, known, words):
    authority = trustme.CA()
    tls = trusting(authority if known else trustme.CA())
    async with Visit(saying(b"{}"), context=serving(authority, *names), tls=tls) as visit:
        with pytest.raises(UnreachableError, match=words):
            await visit.client.request("GET", "/x")
        assert [] == visit.server.asked


async def test_a_stream_that_is_left_ends_at_once_though_the_server_does_not_say_goodbye():
    authority = trustme.CA()
    context, listener = serving(authority, "127.0.0.1"), socket.create_server(("127.0.0.1", 0))

    def serve() -> bytes:
        """Begin an answer, and read what comes below TLS, where nobody answers a goodbye, until the connection ends."""
        connection, _ = listener.accept()
        connection.settimeout(5.0)
        with context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(65536)
            secured.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
            with socket.socket(fileno=os.dup(secured.fileno())) as below:
                below.settimeout(5.0)
                with contextlib.suppress(ConnectionResetError):
                    while below.recv(65536):
                        pass
        return b"ended"

    with listener:
        ended = asyncio.create_task(asyncio.to_thread(serve))
        client = KubeClient(Stub(f"https://127.0.0.1:{listener.getsockname()[1]}", trusting(authority)))
        async with client.stream("/watch", query={}, read_timeout=10.0) as chunks:
            assert b"x" == await anext(aiter(chunks))
        await client.close()

        assert b"ended" == await ended


async def test_a_server_without_tls_is_said_so():
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    client = KubeClient(Stub(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", trusting(trustme.CA())))
    with pytest.raises(UnreachableError, match="TLS handshake failed"):
        await client.request("GET", "/x")
    await client.close()
    server.close()
    await server.wait_closed()


async def test_a_server_that_never_greets_is_said_so(monkeypatch):
    monkeypatch.setattr(streams, "CONNECT_TIMEOUT", 0.1)
    async with Visit(never) as visit:
        client = KubeClient(Stub(visit.server.url.replace("http:", "https:"), trusting(trustme.CA())))
        with pytest.raises(UnreachableError, match="connect timed out"):
            await client.request("GET", "/x")
        await client.close()


async def test_a_new_context_gets_new_connections_and_leaves_running_streams_alone():
    authority = trustme.CA()
    more = asyncio.Event()

    async def answer(asked: Asked, reply: Answer) -> None:
        if not asked.watches:
            await reply.reply(b"{}")
            return
        await reply.begin()
        await reply.chunk(b"one\n")
        await more.wait()
        await reply.chunk(b"two\n")
        await reply.finish()

    async with Visit(answer, context=serving(authority, "127.0.0.1"), tls=trusting(authority)) as visit:
        async with visit.client.stream("/w", query={"watch": "true"}, read_timeout=10) as chunks:
            assert b"one\n" == await anext(chunks)
            await visit.client.request("GET", "/x")
            await visit.client.request("GET", "/x")
            visit.access.context = trusting(authority)
            await visit.client.request("GET", "/x")
            await visit.client.request("GET", "/x")
            more.set()
            assert [b"two\n"] == [chunk async for chunk in chunks]

        used = [asked.connection for asked in visit.server.asked]
        assert [1, 2, 2, 3, 3] == used
