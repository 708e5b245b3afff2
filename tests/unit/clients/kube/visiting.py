"""A server on the loopback that may do anything, and a client that visits it."""

import asyncio
import ssl

from lamina.clients.kube.transport import KubeClient
from tests.unit.clients.kube.loopback import Answer, Asked, Handler, Loopback, Stub


class Visit:
    """A server, a client and what joins them."""

    def __init__(
        self,
        handler: Handler,
        *,
        context: ssl.SSLContext | None = None,
        tls: ssl.SSLContext | None = None,
        prefix: str = "",
    ) -> None:
        self.server = Loopback(handler, context)
        self.tls = tls
        self.prefix = prefix

    async def __aenter__(self) -> "Visit":
        await self.server.__aenter__()
        self.access = Stub(self.server.url + self.prefix, self.tls)
        self.client = KubeClient(self.access, user_agent="lamina-test/1")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self.server.__aexit__()


def saying(body: bytes, code: str = "200 OK", **headers: str) -> Handler:
    async def answer(asked: Asked, reply: Answer) -> None:
        await reply.reply(body, code, {name.replace("_", "-"): value for name, value in headers.items()})

    return answer


async def read(client: KubeClient, read_timeout: float = 10.0) -> list[bytes]:
    async with client.stream("/watch", query={"watch": "true"}, read_timeout=read_timeout) as chunks:
        return [chunk async for chunk in chunks]


async def never(asked: Asked, reply: Answer) -> None:
    await asyncio.sleep(60)
