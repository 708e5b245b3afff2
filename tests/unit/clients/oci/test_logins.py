"""Who is asked and what is shown: mirrors before registries, one credential after the other."""

import asyncio
import os

import pytest

from lamina.clients.oci import resolver as resolver_module
from lamina.clients.oci.keyring import Credential, Keyring
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings
from lamina.clients.oci.resolver import REFUSED, ImageNotFound, RegistryResolver, ResolvedImages
from lamina.model.digest import digest_of
from tests.unit.clients.oci.registry_stub import (
    AMD64,
    Asking,
    Stub,
    a_config,
    a_manifest,
    docker_config,
    rules_for,
    saying,
    send,
)


async def reason(resolver: RegistryResolver, reference: str, **more: object) -> str:
    answer = await resolver.find(reference, [AMD64], **more)  # type: ignore[arg-type]
    assert isinstance(answer, ImageNotFound)
    return answer.reason


# ------------------------------------------------------------------------------------------------------------- mirrors


def with_mirror(registry: Stub, *mirrors: Stub) -> RegistryConfig:
    entries = [RegistrySettings(one.host, plain_http=True, private=True) for one in mirrors]
    own = RegistrySettings(registry.host, plain_http=True, private=True, mirrors=tuple(one.host for one in mirrors))
    return RegistryConfig((own, *entries))


async def test_a_mirror_is_asked_first_with_its_own_credentials():
    async with Stub() as registry, Stub() as mirror:
        auths = {registry.host: "own:pw", mirror.host: "mirror:pw"}
        keyring = Keyring.from_secrets([docker_config(auths)])
        mirror.login = keyring.for_registry(mirror.host)[0].basic  # type: ignore[union-attr]
        async with Asking(with_mirror(registry, mirror), keyring) as resolver:
            mirror.put_image()
            found = await resolver.find(f"{registry.host}/team/app:1", [AMD64])

        assert isinstance(found, ResolvedImages)
        assert [] == registry.asked
        assert 4 == len(mirror.asked)


@pytest.mark.parametrize(
    "status", ["404 Not Found", "500 Internal Server Error", "401 Unauthorized", "429 Too Many Requests"]
)
async def test_when_a_mirror_fails_the_registry_is_asked(status):
    async with Stub() as registry, Stub() as mirror, Asking(with_mirror(registry, mirror)) as resolver:
        mirror.always = saying(status=status)

        assert isinstance(await resolver.find(registry.put_image(), [AMD64]), ResolvedImages)


async def test_a_mirror_that_says_nothing_does_not_use_up_the_time(monkeypatch):
    monkeypatch.setattr(resolver_module, "MIRROR_PATIENCE", 0.2)
    async with Stub() as registry, Stub() as mirror, Asking(with_mirror(registry, mirror)) as resolver:

        async def never(asked, reply):
            await asyncio.Event().wait()

        mirror.always = never

        assert isinstance(await resolver.find(registry.put_image(), [AMD64]), ResolvedImages)


async def test_what_a_mirror_says_about_a_tag_counts_only_if_it_has_the_image():
    async with Stub() as registry, Stub() as mirror, Asking(with_mirror(registry, mirror)) as resolver:
        reference = registry.put_image(layers=2)
        mirror.put_image(layers=3)
        old = digest_of(a_manifest(a_config(3), 3))
        del mirror.documents[f"/v2/team/app/manifests/{old}"]
        found = await resolver.find(reference, [AMD64])

        assert isinstance(found, ResolvedImages)
        assert 2 == len(found.images[0].layers)


# --------------------------------------------------------------------------------------------------------- credentials


async def test_a_name_and_password_are_shown_after_a_challenge_and_then_at_once():
    async with Stub() as registry:
        keyring = Keyring.from_secrets([docker_config({registry.host: "ada:pw"})])
        registry.login = keyring.for_registry(registry.host)[0].basic  # type: ignore[union-attr]
        async with Asking(rules_for(registry)) as resolver:
            reference = registry.put_image()
            refused = await reason(resolver, reference)
            found = await resolver.find(reference, [AMD64], keyring=keyring)

        assert REFUSED == refused
        assert isinstance(found, ResolvedImages)
        shown = [one.headers.get("authorization") for one in registry.server.asked[1:]]
        assert [None, registry.login, registry.login, registry.login] == shown


async def test_the_next_credential_is_tried_when_one_is_refused():
    async with Stub() as registry:
        team = Keyring.from_secrets([docker_config({f"{registry.host}/team": "old:pw", registry.host: "ada:pw"})])
        registry.login = team.for_registry(registry.host)[0].basic  # type: ignore[union-attr]
        async with Asking(rules_for(registry)) as resolver:
            assert isinstance(await resolver.find(registry.put_image(), [AMD64], keyring=team), ResolvedImages)


async def test_our_own_credentials_are_tried_after_those_of_whoever_asks():
    async with Stub() as registry:
        own, theirs = (Keyring.from_secrets([docker_config({registry.host: who})]) for who in ("own:pw", "theirs:pw"))
        registry.login = own.for_registry(registry.host)[0].basic  # type: ignore[union-attr]
        async with Asking(rules_for(registry), own) as resolver:
            reference = registry.put_image()

            assert isinstance(await resolver.find(reference, [AMD64], keyring=theirs), ResolvedImages)
            assert isinstance(resolver.known(reference, [AMD64], keyring=theirs), ResolvedImages)


async def test_what_one_may_see_is_not_told_to_others_from_memory():
    async with Stub() as registry:
        keyring = Keyring.from_secrets([docker_config({registry.host: "ada:pw"})])
        registry.login = keyring.for_registry(registry.host)[0].basic  # type: ignore[union-attr]
        async with Asking(rules_for(registry)) as resolver:
            reference = registry.put_image()
            await resolver.find(reference, [AMD64], keyring=keyring)

            assert REFUSED == await reason(resolver, reference)
            assert isinstance(resolver.known(reference, [AMD64], keyring=keyring), ResolvedImages)


async def test_a_keyring_for_another_registry_changes_nothing():
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        reference = registry.put_image()
        await resolver.find(reference, [AMD64])
        other = Keyring.from_secrets([docker_config({"other.example": "ada:pw"})])

        assert isinstance(resolver.known(reference, [AMD64], keyring=other), ResolvedImages)


async def test_a_registry_that_always_wants_more_is_asked_twice():
    async with Stub() as registry, Asking(rules_for(registry)) as resolver:
        keyring = Keyring.from_secrets([docker_config({registry.host: "ada:pw"})])
        registry.login = "nothing is good enough"

        assert REFUSED == await reason(resolver, f"{registry.host}/a:1", keyring=keyring)
        assert 2 == len(registry.asked)


async def test_the_next_credential_is_tried_where_a_registry_hides_what_it_refuses():
    async with Stub() as registry:
        team = Keyring.from_secrets([docker_config({f"{registry.host}/team": "old:pw", registry.host: "ada:pw"})])
        wanted = team.for_registry(registry.host)[0].basic  # type: ignore[union-attr]
        reference = registry.put_image()

        async def hiding(asked, reply):
            if "authorization" not in asked.headers:
                await send(asked, reply, b"", "401 Unauthorized", {"WWW-Authenticate": "Basic realm=x"})
            elif asked.headers["authorization"] == wanted and asked.path in registry.documents:
                data, kind = registry.documents[asked.path]
                await send(asked, reply, data, headers={"Content-Type": kind, "Docker-Content-Digest": digest_of(data)})
            else:
                await send(asked, reply, b"", "404 Not Found")

        registry.always = hiding
        async with Asking(rules_for(registry)) as resolver:
            assert isinstance(await resolver.find(reference, [AMD64], keyring=team), ResolvedImages)


GIVES = """#!/bin/sh\nprintf '{"Username": "ada", "Secret": "pw"}'\n"""
KNOWS_NOTHING = "#!/bin/sh\necho credentials not found in native keychain\nexit 1\n"


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Make a keyring that asks a program about everything."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "config.json").write_text('{"credsStore": "test"}')

    def make(text):
        program = tmp_path / "docker-credential-test"
        program.write_text(text)
        program.chmod(0o700)
        return Keyring.from_file(tmp_path / "config.json")

    return make


async def test_what_a_helper_gives_is_shown(store):
    async with Stub() as registry, Asking(rules_for(registry), store(GIVES)) as resolver:
        registry.login = Credential("ada", "pw").basic

        assert isinstance(await resolver.find(registry.put_image(), [AMD64]), ResolvedImages)


async def test_a_registry_that_a_helper_does_not_know_is_asked_as_nobody(store):
    async with Stub() as registry, Asking(rules_for(registry), store(KNOWS_NOTHING)) as resolver:
        assert isinstance(await resolver.find(registry.put_image(), [AMD64]), ResolvedImages)


async def test_what_a_helper_failed_at_is_told_when_the_registry_wants_to_see_something(store):
    async with Stub() as registry, Asking(rules_for(registry), store(KNOWS_NOTHING)) as resolver:
        registry.login = "something"
        answer = await resolver.find(registry.put_image(), [AMD64])

        assert isinstance(answer, ImageNotFound)
        assert REFUSED == answer.reason
        assert "docker-credential-test: it has no credentials" in answer.detail
