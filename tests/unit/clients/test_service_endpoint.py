"""Reading an endpoint: within limits, and failures in words."""

import asyncio
import socket

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from lamina.clients.service_endpoint import EndpointError, read_endpoint


async def reading(handler: object, limit: int = 1000, path: str = "/") -> tuple[int, bytes]:
    application = web.Application()
    application.router.add_get("/", handler)
    async with TestServer(application) as server:
        return await read_endpoint(str(server.make_url(path)), limit)


async def test_status_and_body_are_returned():
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=404, text="not here")

    assert (404, b"not here") == await reading(handler)


async def test_a_redirect_is_not_followed():
    async def handler(_: web.Request) -> web.Response:
        raise web.HTTPFound("http://127.0.0.1:1/")

    assert 302 == (await reading(handler))[0]


@pytest.mark.parametrize("size", [1001, 10_000_000])
async def test_an_answer_beyond_the_limit_is_an_error(size):
    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=b"x" * size)

    with pytest.raises(EndpointError, match="more than 1000 bytes"):
        await reading(handler)


async def test_a_port_where_nothing_listens_is_said_in_words():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]

    with pytest.raises(EndpointError, match=r"^Connection refused$"):
        await read_endpoint(f"http://127.0.0.1:{port}/", 1000)


def test_an_address_that_is_none_is_said_in_words():
    with pytest.raises(EndpointError):
        asyncio.run(read_endpoint("http://[::1", 1000))
