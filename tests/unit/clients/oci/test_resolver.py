"""Looking references up: what is asked, what is remembered, who shares and who is refused."""

import asyncio
import math

import pytest

from lamina.clients.oci import resolver as resolver_module
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings
from lamina.clients.oci.resolver import (
    BURST,
    BUSY,
    NO_SUCH_IMAGE,
    NOT_ALLOWED,
    NOT_USABLE,
    ImageNotFound,
    RegistryResolver,
    ResolvedImages,
)
from lamina.model.digest import digest_of
from lamina.model.image import Platform
from tests.unit.clients.oci.registry_stub import (
    AMD64,
    ARM64,
    INDEX,
    MANIFEST,
    Asking,
    Clock,
    Stub,
    a_config,
    a_manifest,
    an_index,
    rules_for,
    send,
)


async def reason(resolver: RegistryResolver, reference: str, **more: object) -> str:
    answer = await resolver.find(reference, [AMD64], **more)  # type: ignore[arg-type]
    assert isinstance(answer, ImageNotFound)
    return answer.reason


# -------------------------------------------------------------------------------------------------------- what is asked


async def test_a_tag_costs_three_questions_and_then_none():
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        reference = registry.put_image()
        before = resolver.known(reference, [AMD64])
        found = await resolver.find(reference, [AMD64])
        assert isinstance(found, ResolvedImages)
        again = await resolver.find(reference, [AMD64])

        digest = found.images[0].digest
        config = digest_of(a_config(2))
        assert [
            "HEAD team/app/manifests/1",
            f"GET team/app/manifests/{digest}",
            f"GET team/app/blobs/{config}",
        ] == registry.asked
        assert before is None
        assert isinstance(again, ResolvedImages)
        assert found.images == again.images
        assert (reference,) == found.images[0].names
        assert 0 < found.good_for <= 300
        assert {"requests": 3, "found": 1, "cached": 1} == resolver.counts
        assert isinstance(resolver.known(reference, [AMD64]), ResolvedImages)


async def test_a_digest_costs_two_questions_and_is_good_for_ever():
    async with Stub() as registry, Asking(rules_for(registry), clock=(clock := Clock())) as resolver:
        registry.put_image()
        reference = f"{registry.host}/team/app@{digest_of(a_manifest(a_config(2)))}"
        found = await resolver.find(reference, [AMD64])
        clock.now += 1e9
        again = await resolver.find(reference, [AMD64])

        assert isinstance(found, ResolvedImages)
        assert math.inf == found.good_for
        assert found == again
        assert 2 == len(registry.asked)


async def test_beside_a_digest_a_tag_is_not_asked_for():
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        registry.put_image()
        reference = f"{registry.host}/team/app:other@{digest_of(a_manifest(a_config(2)))}"

        assert isinstance(await resolver.find(reference, [AMD64]), ResolvedImages)


async def test_of_an_index_only_the_wanted_platforms_are_asked_for():
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        configs = [a_config(1, "amd64"), a_config(2, "arm64"), a_config(3, "s390x")]
        manifests = [a_manifest(config, number + 1) for number, config in enumerate(configs)]
        for manifest, config in zip(manifests, configs, strict=True):
            registry.put("team/app", digest_of(manifest), manifest, MANIFEST, config)
        index = an_index(*zip(manifests, ("amd64", "arm64", "s390x"), strict=True))
        reference = registry.put("team/app", "1", index, INDEX)
        one = await resolver.find(reference, [AMD64])
        cost_of_one = len(registry.asked)
        two = await resolver.find(reference, {AMD64, ARM64})

        assert isinstance(one, ResolvedImages)
        assert isinstance(two, ResolvedImages)
        assert [digest_of(manifests[0])] == [image.digest for image in one.images]
        assert [AMD64, ARM64] == [image.platform for image in two.images]
        # HEAD, index, manifest, configuration; and for the other platform two more.
        assert (4, 6) == (cost_of_one, len(registry.asked))


async def test_the_same_content_under_two_tags_is_asked_for_once():
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        first, second = registry.put_image(tag="1"), registry.put_image(tag="2")
        await resolver.find(first, [AMD64])
        found = await resolver.find(second, [AMD64])

        assert ["HEAD team/app/manifests/2"] == registry.asked[3:]
        assert isinstance(found, ResolvedImages)
        assert (second,) == found.images[0].names


async def test_a_tag_is_asked_for_again_after_five_minutes_and_costs_one_question():
    async with Stub() as registry, Asking(rules_for(registry), clock=(clock := Clock())) as resolver:
        reference = registry.put_image()
        await resolver.find(reference, [AMD64])
        clock.now += 301
        assert resolver.known(reference, [AMD64]) is None
        found = await resolver.find(reference, [AMD64])

        assert isinstance(found, ResolvedImages)
        assert ["HEAD team/app/manifests/1"] == registry.asked[3:]


async def test_a_tag_that_has_moved_is_followed():
    async with Stub() as registry, Asking(rules_for(registry), clock=(clock := Clock())) as resolver:
        reference = registry.put_image(layers=2)
        await resolver.find(reference, [AMD64])
        registry.put_image(layers=3)
        clock.now += 301
        found = await resolver.find(reference, [AMD64])

        assert isinstance(found, ResolvedImages)
        assert 3 == len(found.images[0].layers)


async def test_a_registry_that_names_no_digest_is_asked_for_the_document_and_what_has_changed():
    async with Stub() as registry, Asking(rules_for(registry), clock=(clock := Clock())) as resolver:
        reference = registry.put_image()
        registry.tells_digest = False
        data, kind = registry.documents["/v2/team/app/manifests/1"]

        async def tagged(asked, reply):
            if asked.headers.get("if-none-match") == '"x"':
                await send(asked, reply, b"", "304 Not Modified", {"ETag": '"x"'})
            else:
                await send(asked, reply, data, headers={"Content-Type": kind, "ETag": '"x"'})

        registry.answers["/v2/team/app/manifests/1"] = tagged
        first = await resolver.find(reference, [AMD64])
        clock.now += 301
        second = await resolver.find(reference, [AMD64])

        tag = "team/app/manifests/1"
        assert isinstance(first, ResolvedImages)
        assert first.images == second.images  # type: ignore[union-attr]
        assert [f"HEAD {tag}", f"GET {tag}", registry.asked[2], f"HEAD {tag}", f"GET {tag}"] == registry.asked
        assert '"x"' == registry.server.asked[-1].headers["if-none-match"]


async def test_a_registry_that_does_not_know_head_is_asked_with_get():
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        reference = registry.put_image()
        data, kind = registry.documents["/v2/team/app/manifests/1"]

        async def no_head(asked, reply):
            status = "405 Method Not Allowed" if asked.method == "HEAD" else "200 OK"
            await send(asked, reply, data, status, {"Content-Type": kind})

        registry.answers["/v2/team/app/manifests/1"] = no_head

        assert isinstance(await resolver.find(reference, [AMD64]), ResolvedImages)


# ----------------------------------------------------------------------------------------------------------- who shares


async def test_several_who_ask_for_the_same_share_one_look_up():
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        reference = registry.put_image()
        long = reference.replace(":1", "") + ":1"
        found = await asyncio.gather(*(resolver.find(name, [AMD64]) for name in (reference, long) * 10))

        assert 3 == len(registry.asked)
        assert {(reference,)} == {answer.images[0].names for answer in found}  # type: ignore[union-attr]
        assert 19 == resolver.counts["shared"]


async def test_one_who_gives_up_does_not_end_the_look_up_of_others():
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        reference = registry.put_image()
        first = asyncio.create_task(resolver.find(reference, [AMD64]))
        await asyncio.sleep(0)
        second = asyncio.create_task(resolver.find(reference, [AMD64]))
        await asyncio.sleep(0)
        first.cancel()

        assert isinstance(await second, ResolvedImages)
        assert 3 == len(registry.asked)


async def test_a_namespace_may_ask_for_so_much_and_memory_is_free():
    async with Stub() as registry, Asking(rules_for(registry), clock=(clock := Clock())) as resolver:
        references = [registry.put_image(tag=f"t{number}") for number in range(BURST + 1)]
        first = [await resolver.find(one, [AMD64], namespace="loud") for one in references]
        known = await resolver.find(references[0], [AMD64], namespace="loud")
        other = await resolver.find(references[-1], [AMD64], namespace="quiet")
        clock.now += 301
        later = await resolver.find(references[-1], [AMD64], namespace="loud")

        assert [True] * BURST + [False] == [isinstance(one, ResolvedImages) for one in first]
        assert BUSY == first[-1].reason  # type: ignore[union-attr]
        assert [ResolvedImages, ResolvedImages, ResolvedImages] == [type(one) for one in (known, other, later)]


async def test_without_a_namespace_nothing_is_counted():
    async with Stub() as registry, Asking(rules_for(registry), clock=Clock()) as resolver:
        references = [registry.put_image(tag=f"t{number}") for number in range(3 * BURST)]

        assert {ResolvedImages} == {type(await resolver.find(one, [AMD64])) for one in references}


async def test_only_so_many_look_ups_are_under_way(monkeypatch):
    monkeypatch.setattr(resolver_module, "MOST_UNDER_WAY", 2)
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        references = [registry.put_image(tag=f"t{number}") for number in range(3)]
        answers = await asyncio.gather(*(resolver.find(one, [AMD64]) for one in references))

        assert [ResolvedImages, ResolvedImages, ImageNotFound] == [type(one) for one in answers]


async def test_at_most_eight_questions_are_asked_of_one_host_and_sixteen_of_all():
    running, most, enough = dict.fromkeys("abc", 0), {"one": 0, "all": 0}, asyncio.Event()

    async with Stub() as a, Stub() as b, Stub() as c, Asking(rules_for(a, b, c)) as resolver:

        def slowly(name):
            async def answer(asked, reply):
                running[name] += 1
                most["one"] = max(most["one"], running[name])
                most["all"] = max(most["all"], sum(running.values()))
                if most == {"one": 8, "all": 16}:
                    enough.set()
                await enough.wait()
                running[name] -= 1
                await send(asked, reply, b"", "404 Not Found")

            return answer

        for name, registry in (("a", a), ("b", b), ("c", c)):
            registry.always = slowly(name)
        references = [f"{registry.host}/a:{number}" for registry in (a, b, c) for number in range(20)]
        await asyncio.gather(*(resolver.find(reference, [AMD64]) for reference in references))

        assert {"one": 8, "all": 16} == most


# ------------------------------------------------------------------------------------------------------- who is refused


@pytest.mark.parametrize(
    "reference",
    [
        *("ghcr.io/a/b:1", "nginx", "169.254.169.254/a:1", "localhost:5000/a:1", "127.0.0.1:1/a:1", "[::1]:5000/a"),
        *("kubernetes.default.svc/a:1", "10.96.0.1:443/a:1", "a.b.c:65535/x:y"),
    ],
)
async def test_what_no_rule_names_causes_no_request(reference):
    async with Asking(RegistryConfig()) as resolver:
        assert NOT_ALLOWED == await reason(resolver, reference)
        assert 0 == resolver.counts["requests"]


@pytest.mark.parametrize("reference", ["", "UPPER", "a//b", "https://x/y", "a@sha256:1", "a:b:c", "x" * 5_000, "a\nb"])
async def test_what_is_no_reference_is_told(reference):
    async with Asking(RegistryConfig()) as resolver:
        answer = await resolver.find(reference, [AMD64])

        assert isinstance(answer, ImageNotFound)
        assert (NOT_USABLE, True) == (answer.reason, "\n" not in answer.detail)


async def test_ten_thousand_hostile_pods_cause_no_request():
    """Names of hosts made from that of a server that listens, in every way that somebody may try."""
    async with Stub() as canary, Asking(RegistryConfig((RegistrySettings("registry.example"),))) as resolver:
        resolver.seen_on_nodes(["ghcr.io", "docker.io"])
        port = canary.host.rpartition(":")[2]
        hosts = [
            "127.0.0.1",
            "localhost",
            "127.1",
            "[::1]",
            "[::ffff:7f00:1]",
            "0.0.0.0",
            "2130706433",
            "0x7f.1",
            "LOCALHOST",
        ]
        ways = ["{h}:{p}/a/b{n}", "{h}:{p}/a:{n}", "{h}:{p}/a{n}@sha256:" + "0" * 64, "registry.example@{h}:{p}/a{n}"]
        ways += [
            "http://{h}:{p}/{n}",
            "ghcr.io:{p}/a{n}",
            "{h}.ghcr.io:{p}/a{n}",
            "docker.io.{h}:{p}/a{n}",
            "u:p@{h}:{p}/{n}",
        ]
        references = [
            way.format(h=hosts[number % len(hosts)], p=port, n=number)
            for number, way in ((number, ways[number // len(hosts) % len(ways)]) for number in range(10_000))
        ]
        answers = [await resolver.find(reference, [AMD64], namespace="evil") for reference in references]

        assert {NOT_ALLOWED, NOT_USABLE} == {answer.reason for answer in answers if isinstance(answer, ImageNotFound)}
        assert 10_000 == sum(isinstance(answer, ImageNotFound) for answer in answers)
        assert (0, 0) == (canary.server.connections, resolver.counts["requests"])


async def test_a_registry_on_the_loopback_is_not_asked_unless_it_is_private():
    async with (
        Stub() as registry,
        Asking(RegistryConfig((RegistrySettings(registry.host, plain_http=True),))) as resolver,
    ):
        answer = await resolver.find(registry.put_image(), [AMD64])

        assert isinstance(answer, ImageNotFound)
        assert NOT_ALLOWED == answer.reason
        assert "an address that is loopback" in answer.detail
        assert 0 == registry.server.connections


async def test_what_was_not_found_is_remembered_for_a_minute():
    async with Stub() as registry, Asking(rules_for(registry), clock=(clock := Clock())) as resolver:
        reference = f"{registry.host}/team/app:1"
        reasons = [await reason(resolver, reference) for _ in range(3)]
        known = resolver.known(reference, [AMD64])
        clock.now += 61
        registry.put_image()
        found = await resolver.find(reference, [AMD64])

        assert [NO_SUCH_IMAGE] * 3 == reasons
        assert isinstance(known, ImageNotFound)
        assert isinstance(found, ResolvedImages)
        assert 4 == len(registry.asked)


async def test_a_platform_that_is_missing_is_told():
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        config = a_config(2)
        manifest = a_manifest(config)
        registry.put("a", digest_of(manifest), manifest, MANIFEST, config)
        reference = registry.put("a", "1", an_index((manifest, "amd64")), INDEX)
        answer = await resolver.find(reference, [Platform("linux", "riscv64")])

        assert isinstance(answer, ImageNotFound)
        assert NOT_USABLE == answer.reason
        assert "no image for linux/riscv64" in answer.detail
