"""Registries that mean harm or are broken: every one costs a bounded time and memory, and ends in a reason."""

import asyncio
import gzip
import threading
import time

import pytest

from lamina.clients.oci import registry_connections, registry_fetcher, registry_session, resolver
from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.lookup_results import NO_SUCH_IMAGE, NOT_ALLOWED, NOT_USABLE, REFUSED, TOO_SLOW, UNREACHABLE
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings
from lamina.clients.oci.registry_fetcher import LIMIT
from lamina.clients.oci.resolver import ImageNotFound, ResolvedImages
from lamina.model.digest import digest_of
from tests.unit.clients.kube.loopback import Answer, Asked
from tests.unit.clients.oci.registry_stub import (
    AMD64,
    INDEX,
    MANIFEST,
    Asking,
    Handler,
    Stub,
    a_config,
    a_digest,
    a_manifest,
    an_index,
    docker_config,
    encode,
    rules_for,
    saying,
    send,
    sending,
)

CONFIG = a_config(2)
GOOD = a_manifest(CONFIG)


async def answer_to(registry: Stub, reference: str = "") -> ImageNotFound:
    async with Asking(rules_for(registry)) as resolver:
        answer = await resolver.find(reference or f"{registry.host}/team/app:1", [AMD64])
    assert isinstance(answer, ImageNotFound)
    assert "\n" not in answer.detail
    return answer


# ------------------------------------------------------------------------------------------------------------ documents


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        pytest.param(encode({"schemaVersion": 2, "layers": [], "manifests": []}), MANIFEST, id="both lists"),
        pytest.param(a_manifest(CONFIG, 300), MANIFEST, id="300 layers"),
        pytest.param(
            encode({"schemaVersion": 2, "layers": [{"digest": a_digest("x"), "size": n} for n in range(30_000)]}),
            MANIFEST,
            id="as many layers as fit",
        ),
        pytest.param(a_manifest(CONFIG, 100_000), MANIFEST, id="10^5 layers"),
        pytest.param(
            a_manifest(CONFIG, layers=[{"digest": a_digest("x"), "size": -1}]), MANIFEST, id="a negative size"
        ),
        pytest.param(a_manifest(CONFIG, layers=[{"digest": a_digest("x"), "size": 1e400}]), MANIFEST, id="no number"),
        pytest.param(a_manifest(CONFIG, config={"digest": "sha256:../../../etc/passwd"}), MANIFEST, id="a path"),
        pytest.param(a_manifest(CONFIG, mediaType="evil\r\nX-Header: y"), MANIFEST, id="line breaks in a type"),
        pytest.param(an_index(*[(GOOD, "amd64")] * 300), INDEX, id="an endless index"),
        pytest.param(b"[" * 1_000_000, MANIFEST, id="depth 10^6"),
        pytest.param(b'{"layers":' * 100_000, MANIFEST, id="depth 10^5, as objects"),
        pytest.param(b'{"schemaVersion": ' + b"9" * 5_000 + b"}", MANIFEST, id="5,000 digits"),
        pytest.param(b'\xef\xbb\xbf{"schemaVersion": 2}', MANIFEST, id="a byte order mark"),
        pytest.param(b'{"mediaType": "\\ud800", "layers": []}', MANIFEST, id="half a character"),
        pytest.param(b'{"layers": [], "layers": null, "manifests": []}', INDEX, id="a field twice"),
    ],
)
async def test_a_document_that_means_harm_is_not_usable(data, kind):
    async with Stub() as registry:
        reference = registry.put("team/app", "1", data, kind, CONFIG)

        assert NOT_USABLE == (await answer_to(registry, reference)).reason


async def test_other_bytes_than_asked_for_are_not_usable():
    async with Stub() as registry:
        registry.put("team/app", "1", GOOD, MANIFEST, CONFIG)
        registry.documents[f"/v2/team/app/manifests/{digest_of(GOOD)}"] = (GOOD + b" ", MANIFEST)
        answer = await answer_to(registry)

        assert NOT_USABLE == answer.reason
        assert "the bytes have digest" in answer.detail


async def test_a_configuration_with_other_bytes_is_not_usable():
    async with Stub() as registry:
        registry.put("team/app", "1", GOOD, MANIFEST, CONFIG)
        registry.documents[f"/v2/team/app/blobs/{digest_of(CONFIG)}"] = (a_config(2, "arm64"), "")

        assert NOT_USABLE == (await answer_to(registry)).reason


async def test_a_digest_in_a_header_that_is_none_is_not_believed():
    async with Stub() as registry:
        registry.put("team/app", "1", GOOD, MANIFEST, CONFIG)
        registry.answers["/v2/team/app/manifests/1"] = saying(
            GOOD, Docker_Content_Digest="../../evil", Content_Type=MANIFEST
        )
        async with Asking(rules_for(registry)) as resolver:
            found = await resolver.find(f"{registry.host}/team/app:1", [AMD64])

        assert digest_of(GOOD) == found.images[0].digest
        assert not [asked for asked in registry.asked if "evil" in asked]


async def test_addresses_in_a_layer_are_never_gone_to():
    async with Stub() as registry, Stub() as canary:
        url = f"{canary.server.url}/layer"
        layers = [
            {"digest": a_digest("layer 0"), "size": 1, "urls": [url]},
            {"digest": a_digest("layer 1"), "size": 1, "urls": [url]},
        ]
        manifest = a_manifest(CONFIG, layers=layers, config={"digest": digest_of(CONFIG), "urls": [url]})
        reference = registry.put("team/app", "1", manifest, MANIFEST, CONFIG)
        async with Asking(rules_for(registry)) as resolver:
            assert isinstance(await resolver.find(reference, [AMD64]), ResolvedImages)

        assert 0 == canary.server.connections


async def test_indexes_inside_indexes_end():
    """Each is a different one; that they go on for ever is all a registry can do."""
    async with Stub() as registry:
        inner = GOOD
        for _ in range(10):
            inner = an_index((inner, "amd64"))
            registry.put("team/app", digest_of(inner), inner, INDEX)
        reference = registry.put("team/app", "1", inner, INDEX)
        answer = await answer_to(registry, reference)

        assert NOT_USABLE == answer.reason
        assert "nested indexes" in answer.detail
        assert len(registry.asked) < 10


async def test_an_index_of_itself_is_not_what_its_digest_says():
    async with Stub() as registry:
        digest = a_digest("loop")
        loop = encode({"schemaVersion": 2, "manifests": [{"digest": digest}]})
        registry.documents[f"/v2/team/app/manifests/{digest}"] = (loop, INDEX)

        assert NOT_USABLE == (await answer_to(registry, f"{registry.host}/team/app@{digest}")).reason


async def test_an_index_of_many_that_say_nothing_costs_so_many_questions():
    async with Stub() as registry:
        inner = [an_index((GOOD, "amd64"), annotations={"n": str(number)}) for number in range(200)]
        for one in inner:
            registry.put("team/app", digest_of(one), one, INDEX)
        outer = encode({"manifests": [{"digest": digest_of(one)} for one in inner]})
        reference = registry.put("team/app", "1", outer, INDEX)
        await answer_to(registry, reference)

        assert len(registry.asked) <= 40


# --------------------------------------------------------------------------------------------------------------- bytes


def flood(with_length: bool) -> tuple[Handler, list[int]]:
    sent = [0]

    async def answer(asked: Asked, reply: Answer) -> None:
        length = "Content-Length: 100000000\r\n" if with_length else "Transfer-Encoding: chunked\r\n"
        await reply.send(f"HTTP/1.1 200 OK\r\nContent-Type: {MANIFEST}\r\n{length}\r\n".encode())
        for _ in range(1_600):
            piece = b" " * 65_536
            await (reply.send(piece) if with_length else reply.chunk(piece))
            sent[0] += len(piece)

    return answer, sent


@pytest.mark.parametrize("with_length", [True, False], ids=["announced", "not announced"])
async def test_a_hundred_megabytes_are_not_read(with_length):
    async with Stub() as registry:
        handler, sent = flood(with_length)
        registry.answers[f"/v2/team/app/manifests/{digest_of(GOOD)}"] = handler
        answer = await answer_to(registry, f"{registry.host}/team/app@{digest_of(GOOD)}")

        assert NOT_USABLE == answer.reason
        assert f"more than {LIMIT} bytes" in answer.detail
        # What lies in the buffers of two sockets comes on top of what was read.
        assert sent[0] < 32 * 1024 * 1024


async def test_a_length_that_is_announced_for_head_does_not_matter():
    async with Stub() as registry:
        registry.put("team/app", "1", GOOD, MANIFEST, CONFIG)
        head = f"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\nDocker-Content-Digest: {digest_of(GOOD)}\r\n\r\n"
        registry.answers["/v2/team/app/manifests/1"] = sending(head.encode())
        async with Asking(rules_for(registry)) as resolver:
            assert (await resolver.find(f"{registry.host}/team/app:1", [AMD64])).images


async def test_nothing_compressed_is_unpacked():
    bomb = gzip.compress(b" " * 50_000_000)
    async with Stub() as registry:
        path = f"/v2/team/app/manifests/{digest_of(GOOD)}"
        registry.answers[path] = saying(bomb, Content_Encoding="gzip", Content_Type=MANIFEST)
        answer = await answer_to(registry, f"{registry.host}/team/app@{digest_of(GOOD)}")

        assert NOT_USABLE == answer.reason
        assert "compression" in answer.detail
        assert "identity" == registry.server.asked[0].headers["accept-encoding"]


# ---------------------------------------------------------------------------------------------------------------- time


def test_a_look_up_takes_ten_seconds_at_most():
    assert 10.0 == registry_fetcher.PATIENCE


async def drip(asked: Asked, reply: Answer) -> None:
    await reply.begin()
    while True:
        await reply.chunk(b" ")
        await asyncio.sleep(0.02)


async def drip_headers(asked: Asked, reply: Answer) -> None:
    await reply.send(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        await reply.send(b"a")
        await asyncio.sleep(0.02)


async def never(asked: Asked, reply: Answer) -> None:
    await asyncio.Event().wait()


@pytest.mark.realtime
@pytest.mark.parametrize("handler", [drip, drip_headers, never])
@pytest.mark.parametrize("whose", ["registry_fetcher", "resolver"])
async def test_an_answer_that_does_not_end_is_given_up(handler, whose, monkeypatch):
    monkeypatch.setattr({"registry_fetcher": registry_fetcher, "resolver": resolver}[whose], "PATIENCE", 0.3)
    async with Stub() as registry:
        registry.always = handler
        began = time.monotonic()
        answer = await answer_to(registry, f"{registry.host}/team/app@{digest_of(GOOD)}")

        assert TOO_SLOW == answer.reason
        assert 0.2 < time.monotonic() - began < 5


async def test_a_name_that_cannot_be_looked_up_in_time_is_given_up(monkeypatch):
    monkeypatch.setattr(resolver, "PATIENCE", 0.2)
    answered = threading.Event()
    monkeypatch.setattr(registry_connections, "look_up", lambda *_: answered.wait(60))
    async with Asking(RegistryConfig((RegistrySettings("registry.example"),))) as asked:
        answer = await asked.find("registry.example/a:1", [AMD64])
        answered.set()

        assert TOO_SLOW == answer.reason


# -------------------------------------------------------------------------------------------------------- broken answers


async def reset(asked: Asked, reply: Answer) -> None:
    reply.reset()


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        pytest.param(reset, UNREACHABLE, id="connection reset"),
        pytest.param(sending(b""), UNREACHABLE, id="hung up"),
        pytest.param(sending(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"), UNREACHABLE, id="half an answer"),
        pytest.param(sending(b"\x16\x03\x01\x00\xa5 no HTTP"), UNREACHABLE, id="no HTTP"),
        pytest.param(
            sending(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n"), UNREACHABLE, id="a long header"
        ),
        pytest.param(
            sending(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000 + b"\r\n"), UNREACHABLE, id="endless headers"
        ),
        pytest.param(sending(b"HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n"), UNREACHABLE, id="a lone carriage return"),
        pytest.param(sending(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"), UNREACHABLE, id="a negative length"),
        pytest.param(
            sending(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            UNREACHABLE,
            id="two lengths",
        ),
        pytest.param(
            sending(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), UNREACHABLE, id="no chunks"
        ),
        pytest.param(
            sending(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}{}{}"), UNREACHABLE, id="more than was said"
        ),
        pytest.param(saying(status="500 Internal Server Error"), UNREACHABLE, id="500"),
        pytest.param(saying(status="503 Service Unavailable"), UNREACHABLE, id="503"),
        pytest.param(saying(status="403 Forbidden"), REFUSED, id="403"),
        pytest.param(saying(status="404 Not Found"), NO_SUCH_IMAGE, id="404"),
        pytest.param(saying(status="418 Teapot"), NOT_USABLE, id="418"),
        pytest.param(saying(status="302 Found"), NOT_USABLE, id="a redirect to nowhere"),
        pytest.param(saying(status="304 Not Modified"), NOT_USABLE, id="not modified, which nobody asked"),
    ],
)
async def test_a_broken_answer_has_a_reason(handler, reason):
    async with Stub() as registry:
        registry.always = handler

        assert reason == (await answer_to(registry, f"{registry.host}/team/app@{digest_of(GOOD)}")).reason


async def test_a_question_is_asked_once_however_the_connection_ends():
    async with Stub() as registry:
        registry.always = reset
        await answer_to(registry)

        assert 1 == len(registry.asked)


async def test_a_connection_that_was_closed_in_the_meantime_is_no_trouble():
    """Registries close connections that nobody uses, at times just when somebody does."""
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        first, second = registry.put_image(tag="1"), registry.put_image(tag="2")
        await resolver.find(first, [AMD64])
        honest = registry.server.handler
        seen = len(registry.asked)

        async def closed_once(asked: Asked, reply: Answer) -> None:
            registry.server.handler = honest
            reply.reset()

        registry.server.handler = closed_once
        found = await resolver.find(second, [AMD64])

        assert isinstance(found, ResolvedImages)
        assert ["HEAD team/app/manifests/2"] * 2 == registry.asked[seen:]


async def test_a_refusal_or_a_redirect_leaves_the_connection_for_the_next_question():
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        reference = registry.put("team/app", "1", GOOD, MANIFEST, CONFIG)
        blob = f"/v2/team/app/blobs/{digest_of(CONFIG)}"
        registry.documents["/moved"] = (CONFIG, "")
        registry.answers[blob] = saying(b"it has moved", "307 Temporary Redirect", Location="/moved")
        refused = await resolver.find(f"{registry.host}/team/app@{a_digest('other')}", [AMD64])
        found = await resolver.find(reference, [AMD64])

        assert [ImageNotFound, ResolvedImages] == [type(refused), type(found)]
        assert (5, 1) == (len(registry.asked), registry.server.connections)


async def test_a_registry_that_is_not_there_has_a_reason():
    async with Stub() as registry:
        rules, host = rules_for(registry), registry.host
    async with Asking(rules) as resolver:
        answer = await resolver.find(f"{host}/a:1", [AMD64])

    assert (UNREACHABLE, f"{host}: connection failed") == (answer.reason, answer.detail)


# ----------------------------------------------------------------------------------------------------------- redirects


@pytest.mark.parametrize(
    "location",
    [
        *("http://169.254.169.254/latest/meta-data", "https://169.254.169.254/latest/meta-data"),
        *("https://127.0.0.1/x", "https://localhost/x", "https://[::1]/x", "https://[::ffff:127.0.0.1]/x"),
        *(
            "http://127.0.0.1:1/x",
            "https://127.0.0.1:1/x",
            "https://10.0.0.1/x",
            "https://0.0.0.0/x",
            "https://127.1/x",
        ),
        *("https://2130706433/x", "https://0x7f000001/x", "https://[64:ff9b::7f00:1]/x", "https://100.64.0.1/x"),
        *("file:///etc/passwd", "ftp://example.com/x", "gopher://127.0.0.1/x", "javascript:alert(1)", "//127.0.0.1/x"),
        *("https://user:pw@example.com/x", "https://exa mple.com/x", "https://[::1/x", "https://a.example:99999/x"),
    ],
)
async def test_a_redirect_to_where_we_must_not_go_is_not_followed(location):
    async with Stub() as registry:
        registry.always = saying(status="307 Temporary Redirect", Location=location)
        answer = await answer_to(registry)

        assert NOT_ALLOWED == answer.reason
        assert 1 == len(registry.asked)


async def test_redirects_end():
    async with Stub() as registry:
        registry.always = saying(status="307 Temporary Redirect", Location="/v2/again")
        answer = await answer_to(registry)

        assert UNREACHABLE == answer.reason
        assert "redirects more than 3 times" in answer.detail
        assert 4 == len(registry.asked)


async def test_a_redirect_to_the_same_host_keeps_who_we_are_and_one_to_another_does_not():
    async with Stub() as registry, Stub() as store:
        keyring = Keyring.from_secrets([docker_config({registry.host: "ada:pw"})])
        registry.login = keyring.for_registry(registry.host)[0].basic
        reference = registry.put("team/app", "1", GOOD, MANIFEST, CONFIG)
        blob = f"/v2/team/app/blobs/{digest_of(CONFIG)}"
        store.documents["/blob"] = (CONFIG, "")

        async def moved(asked: Asked, reply: Answer) -> None:
            await send(asked, reply, b"", "307 Temporary Redirect", {"Location": "/here"})

        async def elsewhere(asked: Asked, reply: Answer) -> None:
            await send(
                asked, reply, b"", "307 Temporary Redirect", {"Location": f"{store.server.url}/blob?signature=x"}
            )

        registry.answers = {blob: moved, "/here": elsewhere}
        # Both are plain, which only a redirect to the host itself may be: so the store poses as the registry's other name.
        async with Asking(rules_for(registry)) as resolver:
            refused = await resolver.find(reference, [AMD64], keyring=keyring)

        assert NOT_ALLOWED == refused.reason
        shown = {one.path: one.headers.get("authorization") for one in registry.server.asked}
        assert registry.login == shown["/here"]
        assert 0 == store.server.connections


# -------------------------------------------------------------------------------------------------------- left alone


async def test_not_every_question_to_a_registry_in_trouble_is_asked():
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        registry.always = reset
        await asyncio.gather(*(resolver.find(f"{registry.host}/a:{number}", [AMD64]) for number in range(200)))

        assert len(registry.asked) <= 5 + registry_session.AT_ONCE
