"""References looked up in a real registry: what is found is what was pushed, and how many questions that takes."""

import asyncio
import json

import pytest
import trustme

from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings
from lamina.clients.oci.resolver import NO_SUCH_IMAGE, NOT_USABLE, REFUSED, UNREACHABLE, ImageNotFound, ResolvedImages
from lamina.model.image import Platform
from testbed import made, uploading
from tests.integration.registry.guarded import HTPASSWD, LOGIN, SERVICE, GuardedRegistry, TokenIssuer
from tests.unit.clients.oci.registry_stub import Asking, Clock, Stub, docker_config, encode, saying, send

pytestmark = pytest.mark.realtime

AMD64, ARM64 = Platform(), Platform(architecture="arm64")
SMALL, LARGE, ZSTD = made.layer({"a": b"a"}), made.layer({"b": b"b" * 10_000}), made.layer({"c": b"c"}, "zstd")
PLAIN = made.layer({"d": b"d"}, "none")
IMAGE = made.image([SMALL, LARGE, ZSTD, PLAIN], architecture="amd64")
OTHER = made.image([SMALL], architecture="arm64", variant="v8")


def rules(*hosts, **more):
    return RegistryConfig(tuple(RegistrySettings(host, plain_http=True, private=True, **more) for host in hosts))


def asked_since(registry, count):
    return [f"{one.method} {one.path.rpartition('/')[0].rpartition('/')[2]}" for one in registry.requests()[count:]]


async def seen(registry, count, expected):
    """Wait until the registry has written down so many requests: it does so after it has answered."""
    for _ in range(200):
        if len(registry.requests()) - count >= expected:
            break
        await asyncio.sleep(0.01)
    return asked_since(registry, count)


def layers_of(image):
    return [(layer.digest, layer.size, layer.diff_id) for layer in image.layers]


def made_layers(image):
    return [(layer.digest, layer.size, layer.diff_id) for layer in image.layers]


@pytest.mark.parametrize("docker", [False, True], ids=["OCI", "Docker"])
async def test_an_image_is_found_as_it_was_made(registry_server, docker):
    image = made.image([SMALL, LARGE], architecture="amd64", docker=docker)
    reference = made.push(registry_server.host, f"found-{docker}".lower() + ":1", image)
    before = len(registry_server.requests())
    async with Asking(rules(registry_server.host)) as resolver:
        found = await resolver.find(reference, [AMD64])

    assert isinstance(found, ResolvedImages)
    (one,) = found.images
    assert (image.digest, AMD64, (reference,)) == (one.digest, one.platform, one.names)
    assert made_layers(image) == layers_of(one)
    assert ["HEAD manifests", "GET manifests", "GET blobs"] == await seen(registry_server, before, 3)


async def test_every_compression_is_told_and_what_is_not_compressed_says_its_size(registry_server):
    reference = made.push(registry_server.host, "compressions:1", IMAGE)
    async with Asking(rules(registry_server.host)) as resolver:
        found = await resolver.find(reference, [AMD64])

    assert isinstance(found, ResolvedImages)
    assert made_layers(IMAGE) == layers_of(found.images[0])
    assert [None, None, None, PLAIN.unpacked] == [layer.unpacked for layer in found.images[0].layers]


async def test_an_index_gives_the_platforms_and_leaves_attestations_out(registry_server):
    index = made.index([IMAGE, OTHER], attestations=True)
    reference = made.push(registry_server.host, "platforms:1", index)
    before = len(registry_server.requests())
    async with Asking(rules(registry_server.host)) as resolver:
        one = await resolver.find(reference, [AMD64])
        cost = await seen(registry_server, before, 4)
        both = await resolver.find(reference, [AMD64, ARM64])
        every = await resolver.find(reference, [])
        pinned = await resolver.find(f"{registry_server.host}/platforms@{index.digest}", [ARM64])

    assert ["HEAD manifests", "GET manifests", "GET manifests", "GET blobs"] == cost
    assert [IMAGE.digest] == [image.digest for image in one.images]
    assert [IMAGE.digest, OTHER.digest] == [image.digest for image in both.images]
    assert both.images == every.images
    assert [OTHER.digest] == [image.digest for image in pinned.images]
    assert Platform("linux", "arm64", "v8") == pinned.images[0].platform


async def test_a_tag_is_revalidated_with_one_question_and_followed_when_it_moves(registry_server):
    reference = made.push(registry_server.host, "moving:1", IMAGE)
    clock = Clock()
    async with Asking(rules(registry_server.host), clock=clock) as resolver:
        await resolver.find(reference, [AMD64])
        before = len(registry_server.requests())
        clock.now += 301
        await resolver.find(reference, [AMD64])
        cost = await seen(registry_server, before, 1)
        made.push(registry_server.host, "moving:1", made.image([SMALL], architecture="amd64"))
        same = await resolver.find(reference, [AMD64])
        clock.now += 301
        moved = await resolver.find(reference, [AMD64])

    assert ["HEAD manifests"] == cost
    assert (4, 1) == (len(same.images[0].layers), len(moved.images[0].layers))


async def test_what_is_not_there_is_told(registry_server):
    made.push(registry_server.host, "there:1", IMAGE)
    async with Asking(rules(registry_server.host)) as resolver:
        answers = [
            await resolver.find(f"{registry_server.host}/{name}", [AMD64])
            for name in ("there:2", "nowhere:1", f"there@{OTHER.digest}")
        ]

    assert [NO_SUCH_IMAGE] * 3 == [answer.reason for answer in answers]


async def test_a_chart_is_no_image(registry_server):
    """What registries keep besides images: its configuration has another type."""
    chart = json.loads(IMAGE.manifest)
    chart["config"]["mediaType"] = "application/vnd.cncf.helm.config.v1+json"
    made.push(registry_server.host, "charts:1", IMAGE)
    data = json.dumps(chart).encode()
    uploading.manifest(f"http://{registry_server.host}/v2/charts", "2", data, made.MANIFEST)
    async with Asking(rules(registry_server.host)) as resolver:
        answer = await resolver.find(f"{registry_server.host}/charts:2", [AMD64])

    assert isinstance(answer, ImageNotFound)
    assert NOT_USABLE == answer.reason
    assert "not an image" in answer.detail


async def test_a_hundred_look_ups_at_once(registry_server):
    references = [
        made.push(registry_server.host, f"many-{number}:1", made.image([SMALL, LARGE], architecture="amd64"))
        for number in range(20)
    ]
    before = len(registry_server.requests())
    async with Asking(rules(registry_server.host)) as resolver:
        found = await asyncio.gather(*(resolver.find(references[number % 20], [AMD64]) for number in range(100)))

    assert {ResolvedImages} == {type(one) for one in found}
    assert len(await seen(registry_server, before, 60)) <= 60


async def test_a_name_and_password(registry_server, tmp_path):
    made.push(registry_server.host, "guarded:1", IMAGE)
    (tmp_path / "htpasswd").write_text(HTPASSWD)
    auth = {"htpasswd": {"realm": "tests", "path": str(tmp_path / "htpasswd")}}
    with GuardedRegistry(registry_server, auth) as guarded:
        reference = f"{guarded.host}/guarded:1"
        right, wrong = (
            Keyring.from_secrets([docker_config({guarded.host: login})]) for login in (LOGIN, "ada:wrong password")
        )
        async with Asking(rules(guarded.host)) as resolver:
            answers = [await resolver.find(reference, [AMD64], keyring=ring) for ring in (None, wrong, right)]

    assert [REFUSED, REFUSED] == [answer.reason for answer in answers[:2]]
    assert [IMAGE.digest] == [image.digest for image in answers[2].images]


@pytest.mark.parametrize("login", ["anonymous", "password", "identity token"])
async def test_tokens(registry_server, tmp_path, login):
    made.push(registry_server.host, "team/tokens:1", IMAGE)
    issuer = TokenIssuer(tmp_path)
    asked = []
    async with Stub() as realm:

        async def issue(question, reply):
            asked.append(question)
            await send(question, reply, encode({"token": issuer.token("team/tokens", ["pull"]), "expires_in": 300}))

        realm.always = issue
        with GuardedRegistry(registry_server, issuer.auth(f"{realm.server.url}/token")) as guarded:
            auths = {
                "anonymous": b"{}",
                "password": docker_config({guarded.host: LOGIN}),
                "identity token": encode({"auths": {guarded.host: {"identitytoken": "refresh"}}}),
            }
            keyring = Keyring.from_secrets([auths[login]])
            async with Asking(rules(guarded.host, realms=(realm.host,))) as resolver:
                found = await resolver.find(f"{guarded.host}/team/tokens:1", [AMD64], keyring=keyring)

    assert isinstance(found, ResolvedImages)
    assert [IMAGE.digest] == [image.digest for image in found.images]
    assert 1 == len(asked)
    said = asked[0].body.decode() if login == "identity token" else str(asked[0].query)
    assert SERVICE.split()[0] in said
    assert (login == "password") == ("authorization" in asked[0].headers)


async def test_a_token_for_something_else_is_refused_by_the_registry(registry_server, tmp_path):
    made.push(registry_server.host, "team/tokens:1", IMAGE)
    issuer = TokenIssuer(tmp_path)
    async with Stub() as realm:
        realm.always = saying(encode({"token": issuer.token("team/other", ["pull"])}))
        with GuardedRegistry(registry_server, issuer.auth(f"{realm.server.url}/token")) as guarded:
            async with Asking(rules(guarded.host, realms=(realm.host,))) as resolver:
                answer = await resolver.find(f"{guarded.host}/team/tokens:1", [AMD64])

    assert isinstance(answer, ImageNotFound)
    assert REFUSED == answer.reason


async def test_tls_with_an_authority_of_ones_own(registry_server, tmp_path):
    made.push(registry_server.host, "tls:1", IMAGE)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    tls = {"certificate": str(tmp_path / "cert.pem"), "key": str(tmp_path / "key.pem")}
    with GuardedRegistry(registry_server, tls=tls) as guarded:
        reference = f"{guarded.host}/tls:1"
        known = RegistryConfig((RegistrySettings(guarded.host, private=True, ca_file=str(tmp_path / "ca.pem")),))
        unknown = RegistryConfig((RegistrySettings(guarded.host, private=True),))
        answers = []
        for one in (known, unknown):
            async with Asking(one) as resolver:
                answers.append(await resolver.find(reference, [AMD64]))

    assert [IMAGE.digest] == [image.digest for image in answers[0].images]
    assert UNREACHABLE == answers[1].reason


async def test_a_registry_as_a_mirror_of_another(registry_server):
    made.push(registry_server.host, "mirrored/app:1", IMAGE)
    entries = (
        RegistrySettings("registry.example", mirrors=(registry_server.host,)),
        RegistrySettings(registry_server.host, plain_http=True, private=True),
    )
    async with Asking(RegistryConfig(entries)) as resolver:
        found = await resolver.find("registry.example/mirrored/app:1", [AMD64])

    assert isinstance(found, ResolvedImages)
    assert ("registry.example/mirrored/app:1",) == found.images[0].names
