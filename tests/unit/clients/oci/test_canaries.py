"""Secrets go to where they belong: none is ever in an answer, a count, a log or a repr, whichever way a look-up ends."""

import json
import logging
from urllib.parse import quote

import pytest

from lamina.clients.oci import registry_fetcher, tokens
from lamina.clients.oci.keyring import Credential, Keyring
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings
from tests.unit.clients.kube.loopback import Answer, Asked
from tests.unit.clients.oci.registry_stub import (
    AMD64,
    MANIFEST,
    Asking,
    Handler,
    Stub,
    a_config,
    a_manifest,
    docker_config,
    encode,
    saying,
    send,
    sending,
)

CANARY = "c4n4ry"
PASSWORD, TOKEN, REFRESH, QUERY = (f"{CANARY}-{word}" for word in ("password", "token", "refresh", "query"))
SHOWN = Credential("ada", PASSWORD)


async def echo(asked: Asked, reply: Answer) -> None:
    """Put everything that was shown into a document."""
    told = asked.headers.get("authorization", "")
    told += f" {'x ' * 30}{PASSWORD if told.startswith('Basic') else TOKEN}"
    await send(asked, reply, a_manifest(a_config(2), mediaType=told), headers={"Content-Type": MANIFEST})


async def echo_in_digests(asked: Asked, reply: Answer) -> None:
    told = asked.headers.get("authorization", "")
    body = encode({"schemaVersion": 2, "layers": [{"digest": told or TOKEN, "size": 1}]})
    await send(asked, reply, body, headers={"Content-Type": MANIFEST, "Docker-Content-Digest": told})


async def echo_in_status(asked: Asked, reply: Answer) -> None:
    told = asked.headers.get("authorization", "")
    await reply.send(f"HTTP/1.1 500 {told}\r\nX: {told}\r\nContent-Length: {len(told)}\r\n\r\n{told}".encode())


async def echo_broken(asked: Asked, reply: Answer) -> None:
    await reply.send(f"NONSENSE {asked.headers.get('authorization', TOKEN)}\r\n\r\n".encode())


WAYS = [
    pytest.param(echo, id="in a media type"),
    pytest.param(echo_in_digests, id="in a digest"),
    pytest.param(echo_in_status, id="in a status line"),
    pytest.param(echo_broken, id="in place of HTTP"),
    pytest.param(saying(status="307 Temporary Redirect", Location=f"http://evil.example/?x={QUERY}"), id="a redirect"),
    pytest.param(saying(status="307 Temporary Redirect", Location=f"https://a:{PASSWORD}@evil.example/"), id="a user"),
    pytest.param(saying(status="307 Temporary Redirect", Location=f"https://127.0.0.1/?{QUERY}"), id="a bad address"),
    pytest.param(saying(status="307 Temporary Redirect", Location=f"/again?{QUERY}"), id="redirects without end"),
    pytest.param(saying(status="403 Forbidden"), id="403"),
    pytest.param(saying(status="404 Not Found"), id="404"),
    pytest.param(saying(status="429 Too Many Requests", Retry_After=TOKEN), id="429"),
    pytest.param(saying(status="500 Internal Server Error", X=TOKEN), id="500"),
    pytest.param(saying(b"x", Content_Encoding=TOKEN), id="an encoding"),
    pytest.param(saying(b"x", Content_Type=TOKEN), id="a type"),
    pytest.param(sending(b"HTTP/1.1 200 OK\r\nX: " + TOKEN.encode() * 2_000 + b"\r\n\r\n"), id="a long header"),
    pytest.param(
        saying(status="401 Unauthorized", WWW_Authenticate=f'Bearer realm="https://evil/?{QUERY}"'), id="a realm"
    ),
    pytest.param(saying(status="401 Unauthorized", WWW_Authenticate=f'Bearer realm="{TOKEN}"'), id="no realm"),
    pytest.param(saying(status="401 Unauthorized", WWW_Authenticate="Basic realm=x"), id="401 without end"),
    pytest.param(None, id="found"),
]


@pytest.fixture(autouse=True)
def everything_is_logged(caplog):
    caplog.set_level(logging.DEBUG)
    logging.getLogger("asyncio").setLevel(logging.INFO)
    return caplog


def hidden(caplog, *told: object) -> None:
    text = " ".join([*map(str, told), *map(repr, told), caplog.text])
    for secret in (CANARY, SHOWN.basic, SHOWN.basic.partition(" ")[2], quote(PASSWORD)):
        assert secret not in text


@pytest.mark.parametrize("hostile", WAYS)
@pytest.mark.parametrize("how", ["basic", "token", "identity token"])
async def test_no_way_to_end_shows_a_secret(hostile: Handler | None, how, caplog):
    async with Stub() as registry, Stub() as realm:
        entry = RegistrySettings(registry.host, plain_http=True, private=True, realms=(realm.host,))
        reference = registry.put_image()
        realm.always = saying(encode({"token": TOKEN}))
        secret = docker_config({registry.host: f"ada:{PASSWORD}"})
        registry.login = SHOWN.basic
        if how != "basic":
            registry.login = f"Bearer {TOKEN}"
            registry.challenge = f'Bearer realm="{realm.server.url}/token?x={QUERY}",service="{QUERY}"'
        if how == "identity token":
            secret = json.dumps({"auths": {registry.host: {"identitytoken": REFRESH}}}).encode()
        keyring = Keyring.from_secrets([secret])
        logins = keyring.for_registry(registry.host)
        async with Asking(RegistryConfig((entry,))) as resolver:
            # A token is had and a password shown before the registry turns.
            warm = await resolver.find(reference, [AMD64], keyring=keyring)
            registry.always = hostile
            answers = [
                await resolver.find(f"{registry.host}/team/app:{tag}", [AMD64], keyring=keyring) for tag in ("2", "3")
            ]
            known = resolver.known(f"{registry.host}/team/app:2", [AMD64], keyring=keyring)

        shown = {one.headers.get("authorization") for one in registry.server.asked}
        assert registry.login in shown, "nothing was at stake"
        hidden(caplog, warm, *answers, known, dict(resolver.counts), keyring, logins)


@pytest.mark.parametrize(
    "handler",
    [
        saying(status=f"500 {REFRESH}"),
        saying(status="401 Unauthorized", X=TOKEN),
        saying(encode({"token": f"{TOKEN}\r\n"})),
        saying(f"{TOKEN}{{".encode()),
        saying(status="302 Found", Location=f"https://evil.example/?{QUERY}"),
        sending(TOKEN.encode()),
    ],
    ids=["500", "401", "a bad token", "no JSON", "a redirect", "no HTTP"],
)
async def test_no_way_a_realm_can_fail_shows_a_secret(handler, caplog):
    async with Stub() as registry, Stub() as realm:
        entry = RegistrySettings(registry.host, plain_http=True, private=True, realms=(realm.host,))
        registry.login = f"Bearer {TOKEN}"
        registry.challenge = f'Bearer realm="{realm.server.url}/token?x={QUERY}"'
        realm.always = handler
        keyring = Keyring.from_secrets([docker_config({registry.host: f"ada:{PASSWORD}"})])
        async with Asking(RegistryConfig((entry,))) as resolver:
            answer = await resolver.find(registry.put_image(), [AMD64], keyring=keyring)

        assert SHOWN.basic == realm.server.asked[0].headers["authorization"]
        hidden(caplog, answer)


@pytest.mark.parametrize(
    "reference",
    [
        f"https://ada:{PASSWORD}@registry.example/a:1",
        f"ada:{PASSWORD}@registry.example/a:1",
        f"registry.example/a:1?token={TOKEN}@x",
    ],
)
async def test_a_password_in_a_reference_is_not_repeated(reference, caplog):
    async with Asking(RegistryConfig()) as resolver:
        answer = await resolver.find(reference, [AMD64])

    hidden(caplog, answer)
    assert "\n" not in answer.detail  # type: ignore[union-attr]


def test_what_is_passed_around_does_not_show_itself():
    answer = registry_fetcher.RegistryResponse(200, {"ETag": TOKEN}, (f'Bearer realm="{QUERY}"',), TOKEN.encode())
    told = [SHOWN, answer, tokens._Token(TOKEN, TOKEN)]

    assert CANARY not in repr(told) + str(told)
