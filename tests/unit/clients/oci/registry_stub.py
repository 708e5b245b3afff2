"""
A registry on the loopback that does what a script tells it: honest until a handler says otherwise.

    async with Stub() as registry:
        registry.put("team/app", "1.0", manifest)
        registry.answers["/v2/team/app/manifests/1.0"] = hostile     called in place of the honest answer
"""

import base64
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Self

from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings
from lamina.clients.oci.resolver import RegistryResolver
from lamina.model.digest import digest_of
from lamina.model.image import Platform
from tests.unit.clients.kube.loopback import Answer, Asked, Loopback

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
INDEX: Final = "application/vnd.oci.image.index.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
AMD64: Final = Platform()
ARM64: Final = Platform(architecture="arm64")

Handler = Callable[[Asked, Answer], Awaitable[None]]


def encode(document: object) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def a_digest(word: str) -> str:
    return digest_of(word.encode())


def a_config(layers: int, architecture: str = "amd64", **more: Any) -> bytes:
    diff_ids = [a_digest(f"unpacked {number}") for number in range(layers)]
    return encode({"os": "linux", "architecture": architecture, "rootfs": {"diff_ids": diff_ids}, **more})


def a_manifest(config: bytes, layers: int = 2, /, **more: Any) -> bytes:
    listed = [
        {"digest": a_digest(f"layer {number}"), "size": 100 + number, "mediaType": LAYER} for number in range(layers)
    ]
    document = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"digest": digest_of(config), "size": len(config), "mediaType": CONFIG},
        "layers": listed,
    }
    return encode(document | more)


def an_index(*manifests: tuple[bytes, str], **more: Any) -> bytes:
    listed = [
        {"digest": digest_of(data), "size": len(data), "platform": {"os": "linux", "architecture": architecture}}
        for data, architecture in manifests
    ]
    return encode({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed} | more)


class Stub:
    """The registry."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.documents: dict[str, tuple[bytes, str]] = {}
        self.answers: dict[str, Handler] = {}
        self.always: Handler | None = None
        self.login = ""
        """The Authorization that is wanted, if any is."""
        self.challenge = 'Basic realm="registry"'
        self.tells_digest = True
        self.server = Loopback(self._answer, context)

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.__aexit__()

    @property
    def host(self) -> str:
        return self.server.url.partition("://")[2]

    @property
    def asked(self) -> list[str]:
        """What was asked so far, in short."""
        return [f"{one.method} {one.path.removeprefix('/v2/')}" for one in self.server.asked]

    def put(self, repository: str, tag: str, data: bytes, kind: str = MANIFEST, *blobs: bytes) -> str:
        """Hold a document under its tag and its digest, with what belongs to it; return the reference."""
        for name in (tag, digest_of(data)):
            self.documents[f"/v2/{repository}/manifests/{name}"] = (data, kind)
        for blob in blobs:
            self.documents[f"/v2/{repository}/blobs/{digest_of(blob)}"] = (blob, "application/octet-stream")
        return f"{self.host}/{repository}:{tag}"

    def put_image(
        self, repository: str = "team/app", tag: str = "1", architecture: str = "amd64", layers: int = 2
    ) -> str:
        """Hold a good image."""
        config = a_config(layers, architecture)
        return self.put(repository, tag, a_manifest(config, layers), MANIFEST, config)

    async def _answer(self, asked: Asked, reply: Answer) -> None:
        handler = self.answers.get(asked.path) or self.always
        if handler is not None:
            await handler(asked, reply)
        elif self.login and asked.headers.get("authorization") != self.login:
            await send(asked, reply, b"{}", "401 Unauthorized", {"WWW-Authenticate": self.challenge})
        elif asked.path in self.documents:
            data, kind = self.documents[asked.path]
            headers = {"Content-Type": kind}
            if self.tells_digest:
                headers["Docker-Content-Digest"] = digest_of(data)
            await send(asked, reply, data, headers=headers)
        else:
            await send(asked, reply, b"{}", "404 Not Found")


async def send(
    asked: Asked, reply: Answer, body: bytes, status: str = "200 OK", headers: Mapping[str, str] | None = None
) -> None:
    """Send a whole answer; to HEAD without the body."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    reply.whole = True
    await reply.send("\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if asked.method == "HEAD" else body))


def saying(body: bytes = b"", status: str = "200 OK", **headers: str) -> Handler:
    """Answer always the same."""

    async def answer(asked: Asked, reply: Answer) -> None:
        await send(asked, reply, body, status, {name.replace("_", "-"): value for name, value in headers.items()})

    return answer


def sending(data: bytes) -> Handler:
    """Send some bytes and hang up."""

    async def answer(asked: Asked, reply: Answer) -> None:
        await reply.send(data)

    return answer


def rules_for(*registries: Stub, **more: Any) -> RegistryConfig:
    entries = (RegistrySettings(one.host, plain_http=True, private=True, **more) for one in registries)
    return RegistryConfig(tuple(entries))


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Asking:
    """A resolver for as long as a block lasts."""

    def __init__(self, rules: RegistryConfig, keyring: Keyring | None = None, **more: Any) -> None:
        self.resolver = RegistryResolver(rules, keyring, **more)

    async def __aenter__(self) -> RegistryResolver:
        return self.resolver

    async def __aexit__(self, *_: object) -> None:
        await self.resolver.close()


def docker_config(auths: Mapping[str, str], **more: Any) -> bytes:
    """Write a Docker configuration; *auths* has name:password by registry."""
    entries = {host: {"auth": base64.b64encode(text.encode()).decode()} for host, text in auths.items()}
    return encode({"auths": entries, **more})
