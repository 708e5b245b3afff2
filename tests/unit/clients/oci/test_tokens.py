"""Tokens: fetched for one repository from a realm that is accepted, kept while they are good, told to nobody else."""

import base64
import json
from urllib.parse import parse_qs, urlencode

import pytest

from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.lookup_results import NOT_ALLOWED, REFUSED, UNREACHABLE
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings
from lamina.clients.oci.resolver import ImageNotFound, ResolvedImages
from tests.unit.clients.kube.loopback import Answer, Asked
from tests.unit.clients.oci.registry_stub import (
    AMD64,
    Asking,
    Clock,
    Handler,
    Stub,
    docker_config,
    encode,
    saying,
    send,
    sending,
)


def with_realm(registry: Stub, realm: Stub) -> RegistryConfig:
    return RegistryConfig((RegistrySettings(registry.host, plain_http=True, private=True, realms=(realm.host,)),))


def guarded(registry: Stub, realm: Stub, token: str = "good", **more: str) -> None:
    """Let the registry ask for a token of the realm."""
    registry.login = f"Bearer {token}"
    said = {"realm": f"{realm.server.url}/token", "service": "the registry", **more}
    registry.challenge = "Bearer " + ",".join(f'{name}="{value}"' for name, value in said.items())


def giving(**answer: object) -> Handler:
    return saying(encode(answer))


async def test_a_token_is_fetched_for_reading_one_repository_and_kept():
    async with Stub() as registry, Stub() as realm, Asking(with_realm(registry, realm)) as resolver:
        guarded(registry, realm, scope="registry:catalog:*")
        realm.always = giving(token="good", expires_in=300)
        first = await resolver.find(registry.put_image(tag="1"), [AMD64])
        second = await resolver.find(registry.put_image(tag="2"), [AMD64])

        assert [ResolvedImages, ResolvedImages] == [type(first), type(second)]
        assert ["GET /token"] == realm.asked
        assert {"service": "the registry", "scope": "repository:team/app:pull"} == realm.server.asked[0].query
        assert "authorization" not in realm.server.asked[0].headers


async def test_each_repository_gets_a_token_of_its_own():
    async with Stub() as registry, Stub() as realm, Asking(with_realm(registry, realm)) as resolver:
        guarded(registry, realm)
        realm.always = giving(access_token="good")
        await resolver.find(registry.put_image("team/app"), [AMD64])
        await resolver.find(registry.put_image("team/other"), [AMD64])

        assert ["repository:team/app:pull", "repository:team/other:pull"] == [
            one.query["scope"] for one in realm.server.asked
        ]


async def test_a_name_and_password_are_shown_to_the_realm_and_the_token_to_the_registry():
    async with Stub() as registry, Stub() as realm, Asking(with_realm(registry, realm)) as resolver:
        guarded(registry, realm)
        keyring = Keyring.from_secrets([docker_config({registry.host: "ada:pw"})])
        realm.always = giving(token="good")
        await resolver.find(registry.put_image(), [AMD64], keyring=keyring)
        basic = "Basic " + base64.b64encode(b"ada:pw").decode()

        assert [basic] == [one.headers["authorization"] for one in realm.server.asked]
        assert {None, "Bearer good"} == {one.headers.get("authorization") for one in registry.server.asked}


async def test_an_identity_token_is_exchanged():
    async with Stub() as registry, Stub() as realm, Asking(with_realm(registry, realm)) as resolver:
        guarded(registry, realm)
        secret = json.dumps({"auths": {registry.host: {"identitytoken": "refresh"}}}).encode()
        realm.always = giving(access_token="good")
        found = await resolver.find(registry.put_image(), [AMD64], keyring=Keyring.from_secrets([secret]))
        asked = realm.server.asked[0]

        assert isinstance(found, ResolvedImages)
        assert ("POST", {}) == (asked.method, asked.query)
        assert {
            "grant_type": ["refresh_token"],
            "client_id": ["lamina"],
            "refresh_token": ["refresh"],
            "service": ["the registry"],
            "scope": ["repository:team/app:pull"],
        } == parse_qs(asked.body.decode())


async def test_a_query_of_the_realm_stays():
    async with Stub() as registry, Stub() as realm, Asking(with_realm(registry, realm)) as resolver:
        guarded(registry, realm)
        registry.challenge = f'Bearer realm="{realm.server.url}/token?account=x#part"'
        realm.always = giving(token="good")
        await resolver.find(registry.put_image(), [AMD64])

        assert {"account": "x", "scope": "repository:team/app:pull"} == realm.server.asked[0].query


async def test_a_service_cannot_smuggle_anything_into_the_question():
    async with Stub() as registry, Stub() as realm, Asking(with_realm(registry, realm)) as resolver:
        guarded(registry, realm, service="a&scope=repository:secret:push&b=\t#c")
        realm.always = giving(token="good")
        await resolver.find(registry.put_image(), [AMD64])

        assert "repository:team/app:pull" == realm.server.asked[0].query["scope"]
        assert urlencode({"service": "a&scope=repository:secret:push&b=\t#c"}) != ""


@pytest.mark.parametrize(
    ("expires_in", "later", "fetched"),
    [
        pytest.param(300, 285, 1, id="good still"),
        pytest.param(300, 291, 2, id="nearly over"),
        pytest.param(None, 49, 1, id="a minute if it does not say"),
        pytest.param(None, 51, 2, id="over"),
        pytest.param(-5, 0, 2, id="over from the start"),
        pytest.param(1e12, 3_595, 2, id="for ever is an hour"),
    ],
)
async def test_a_token_is_used_until_shortly_before_its_end(expires_in, later, fetched):
    clock = Clock()
    async with Stub() as registry, Stub() as realm, Asking(with_realm(registry, realm), clock=clock) as resolver:
        guarded(registry, realm)
        realm.always = giving(token="good", expires_in=expires_in)
        references = [registry.put_image(tag=tag) for tag in ("1", "2")]
        if expires_in == -5:
            del registry.documents["/v2/team/app/manifests/1"]
        await resolver.find(references[0], [AMD64])
        clock.now += later
        assert isinstance(await resolver.find(references[1], [AMD64]), ResolvedImages)

        assert fetched <= len(realm.asked)
        assert (fetched == 1) == (len(realm.asked) == 1)


async def test_a_token_that_is_refused_is_fetched_again():
    async with Stub() as registry, Stub() as realm, Asking(with_realm(registry, realm)) as resolver:
        guarded(registry, realm, "first")
        realm.always = giving(token="first", expires_in=3_600)
        await resolver.find(registry.put_image(tag="1"), [AMD64])
        registry.login = "Bearer second"
        realm.always = giving(token="second", expires_in=3_600)

        assert isinstance(await resolver.find(registry.put_image(tag="2"), [AMD64]), ResolvedImages)
        assert 2 == len(realm.asked)


async def test_a_token_that_is_never_good_enough_is_fetched_once():
    async with Stub() as registry, Stub() as realm, Asking(with_realm(registry, realm)) as resolver:
        guarded(registry, realm)
        realm.always = giving(token="bad")
        answer = await resolver.find(registry.put_image(), [AMD64])

        assert isinstance(answer, ImageNotFound)
        assert REFUSED == answer.reason
        assert (2, 1) == (len(registry.asked), len(realm.asked))


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        pytest.param(saying(status="401 Unauthorized"), REFUSED, id="401"),
        pytest.param(saying(status="403 Forbidden"), REFUSED, id="403"),
        pytest.param(saying(status="500 Internal Server Error"), UNREACHABLE, id="500"),
        pytest.param(saying(status="302 Found", Location="https://example.com/"), UNREACHABLE, id="a redirect"),
        pytest.param(saying(b"{"), UNREACHABLE, id="no JSON"),
        pytest.param(saying(b"[" * 100_000), UNREACHABLE, id="deep"),
        pytest.param(giving(), UNREACHABLE, id="no token"),
        pytest.param(giving(token=""), UNREACHABLE, id="an empty token"),
        pytest.param(giving(token=5), UNREACHABLE, id="a number"),
        pytest.param(giving(token="a\r\nX-Evil: yes"), UNREACHABLE, id="line breaks"),
        pytest.param(giving(token="a b"), UNREACHABLE, id="a space"),
        pytest.param(giving(token="tökén"), UNREACHABLE, id="other letters"),
        pytest.param(giving(token="a" * 20_000), UNREACHABLE, id="too long"),
        pytest.param(saying(b" " * 5_000_000), "NotUsable", id="5 MB"),
        pytest.param(sending(b""), UNREACHABLE, id="hung up"),
    ],
)
async def test_a_realm_that_gives_no_token_has_a_reason(handler, reason):
    async with Stub() as registry, Stub() as realm, Asking(with_realm(registry, realm)) as resolver:
        guarded(registry, realm)
        realm.always = handler
        answer = await resolver.find(registry.put_image(), [AMD64])

        assert isinstance(answer, ImageNotFound)
        assert reason == answer.reason
        assert not [one for one in registry.server.asked if "x-evil" in one.headers]


@pytest.mark.parametrize(
    "realm",
    [
        *("http://169.254.169.254/latest/meta-data/iam", "https://169.254.169.254/", "https://10.0.0.1/token"),
        *(
            "https://evil.example/token",
            "https://127.0.0.1:1/token",
            "http://127.0.0.1:1/token",
            "https://127.0.0.1/token",
        ),
        *("file:///etc/passwd", "/token", "", "https://user:pw@127.0.0.1/", "https://127.1/", "https://[::1]/token"),
    ],
)
async def test_credentials_are_not_sent_to_any_other_realm(realm):
    async with Stub() as registry, Stub() as canary:
        rules = RegistryConfig((RegistrySettings(registry.host, plain_http=True, private=True),))
        keyring = Keyring.from_secrets([docker_config({registry.host: "ada:pw"})])
        registry.login = "Bearer good"
        for place in (realm, f"{canary.server.url}/token"):
            registry.challenge = f'Bearer realm="{place}",service="x"'
            async with Asking(rules) as resolver:
                answer = await resolver.find(registry.put_image(), [AMD64], keyring=keyring)
                assert isinstance(answer, ImageNotFound)
                assert answer.reason in (NOT_ALLOWED, REFUSED, UNREACHABLE)

        assert 0 == canary.server.connections
        assert {None} == {one.headers.get("authorization") for one in registry.server.asked}


async def test_a_password_is_shown_to_a_registry_only_when_it_asks_for_one():
    async with Stub() as registry:
        rules = RegistryConfig((RegistrySettings(registry.host, plain_http=True, private=True),))
        keyring = Keyring.from_secrets([docker_config({registry.host: "ada:pw"})])
        registry.login = "something else"
        for challenge in ("Negotiate", "Digest realm=x", 'Bearer service="no realm"', ""):
            registry.challenge = challenge
            async with Asking(rules) as resolver:
                answer = await resolver.find(registry.put_image(), [AMD64], keyring=keyring)
            assert isinstance(answer, ImageNotFound)
            assert REFUSED == answer.reason

        assert {None} == {one.headers.get("authorization") for one in registry.server.asked}


async def test_a_registry_may_want_different_things_for_different_questions():
    """A token for manifests; a password for blobs, which another program serves."""
    async with Stub() as registry, Stub() as realm, Asking(with_realm(registry, realm)) as resolver:
        guarded(registry, realm)
        realm.always = giving(token="good")
        reference = registry.put_image()
        keyring = Keyring.from_secrets([docker_config({registry.host: "ada:pw"})])
        blob = next(path for path in registry.documents if "/blobs/" in path)
        basic = "Basic " + base64.b64encode(b"ada:pw").decode()

        async def another(asked: Asked, reply: Answer) -> None:
            if asked.headers.get("authorization") == basic:
                await send(asked, reply, registry.documents[blob][0])
            else:
                await send(asked, reply, b"", "401 Unauthorized", {"WWW-Authenticate": "Basic realm=x"})

        registry.answers[blob] = another

        assert isinstance(await resolver.find(reference, [AMD64], keyring=keyring), ResolvedImages)
