"""Connections: to addresses that were judged, with certificates that are believed, and to nothing else."""

import asyncio
import socket
import ssl
import subprocess
import sys
import threading

import pytest
import trustme

from lamina.clients.oci import registry_connections, registry_fetcher
from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.lookup_results import NOT_ALLOWED, TOO_SLOW, UNREACHABLE
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings
from lamina.clients.oci.resolver import ResolvedImages
from lamina.model.digest import digest_of
from tests.unit.clients.kube.loopback import Answer, Asked
from tests.unit.clients.oci.registry_stub import (
    AMD64,
    MANIFEST,
    Asking,
    Stub,
    a_config,
    a_manifest,
    docker_config,
    send,
)


class Names:
    """Says what names mean, and remembers who asked."""

    def __init__(self, monkeypatch, **answers: list[list[str]]) -> None:
        self.answers = {name.replace("_", "."): list(turns) for name, turns in answers.items()}
        self.asked: list[str] = []
        monkeypatch.setattr(registry_connections, "look_up", self.look_up)

    def look_up(self, host, port, family):
        self.asked.append(host)
        turns = self.answers[host]
        addresses = turns.pop(0) if len(turns) > 1 else turns[0]
        kinds = [socket.AF_INET6 if ":" in one else socket.AF_INET for one in addresses]
        return [(kind, socket.SOCK_STREAM, 6, "", (one, port)) for kind, one in zip(kinds, addresses, strict=True)]


@pytest.fixture
def dialled(monkeypatch):
    """Where sockets are connected to; nothing is."""
    seen: list[str] = []

    async def connect(self, sock, address):
        seen.append(address[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncio.BaseEventLoop, "sock_connect", connect, raising=False)
    monkeypatch.setattr(asyncio.selector_events.BaseSelectorEventLoop, "sock_connect", connect)
    return seen


async def find(rules: RegistryConfig, reference: str = "registry.example/a:1"):
    async with Asking(rules) as resolver:
        return await resolver.find(reference, [AMD64])


PUBLIC = RegistryConfig((RegistrySettings("registry.example"),))


async def test_what_is_connected_to_is_what_was_judged(monkeypatch, dialled):
    """The name means something public when it is asked for first, and something private from then on."""
    names = Names(monkeypatch, registry_example=[["8.8.8.8"], ["127.0.0.1"]])
    answer = await find(PUBLIC)

    assert UNREACHABLE == answer.reason
    assert (["registry.example"], ["8.8.8.8"]) == (names.asked, dialled)


async def test_the_next_connection_is_judged_again(monkeypatch, dialled):
    Names(monkeypatch, registry_example=[["8.8.8.8"], ["127.0.0.1"]])
    async with Asking(PUBLIC) as resolver:
        first = await resolver.find("registry.example/a:1", [AMD64])
        second = await resolver.find("registry.example/a:2", [AMD64])

    assert (UNREACHABLE, NOT_ALLOWED) == (first.reason, second.reason)
    assert ["8.8.8.8"] == dialled


@pytest.mark.parametrize(
    "addresses",
    [
        pytest.param(["127.0.0.1"], id="loopback"),
        pytest.param(["10.96.0.1"], id="a service"),
        pytest.param(["169.254.169.254"], id="instance metadata"),
        pytest.param(["8.8.8.8", "10.0.0.1"], id="one of two"),
        pytest.param(["8.8.8.8", "::1"], id="one of two, the other kind"),
        pytest.param(["::ffff:10.0.0.1"], id="one inside another"),
        pytest.param(["fe80::1%eth0"], id="with a zone"),
        pytest.param(["198.51.100.1"], id="documentation"),
        pytest.param(["168.63.129.16"], id="what Azure tells its machines, on a public number"),
    ],
)
async def test_a_name_with_a_refused_address_is_not_connected_to(monkeypatch, dialled, addresses):
    Names(monkeypatch, registry_example=[addresses])
    answer = await find(PUBLIC)

    assert NOT_ALLOWED == answer.reason
    assert "registry.example has an address that is" in answer.detail
    assert [] == dialled


async def test_a_name_in_a_refused_network_is_not_connected_to(monkeypatch, dialled):
    Names(monkeypatch, registry_example=[["203.0.114.7"]])
    allowed = await find(PUBLIC)
    refused = await find(RegistryConfig((RegistrySettings("registry.example"),), refuse=("203.0.114.0/24",)))

    assert (UNREACHABLE, NOT_ALLOWED) == (allowed.reason, refused.reason)
    assert ["203.0.114.7"] == dialled


async def test_a_registry_that_nodes_pull_from_is_judged_like_any_other(monkeypatch, dialled):
    Names(monkeypatch, registry_example=[["127.0.0.1"]])
    async with Asking(RegistryConfig()) as resolver:
        resolver.seen_on_nodes(["registry.example"])
        answer = await resolver.find("registry.example/a:1", [AMD64])

    assert NOT_ALLOWED == answer.reason
    assert [] == dialled


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1:5000", "[::1]:5000", "[::ffff:7f00:1]", "169.254.169.254"])
async def test_an_address_in_a_reference_is_judged_like_any_other(dialled, host):
    answer = await find(RegistryConfig((RegistrySettings(host),)), f"{host}/a:1")

    assert NOT_ALLOWED == answer.reason
    assert [] == dialled


async def test_instance_metadata_is_never_asked_whatever_is_configured(dialled):
    rules = RegistryConfig((RegistrySettings("169.254.169.254", private=True, plain_http=True),))

    assert NOT_ALLOWED == (await find(rules, "169.254.169.254/a:1")).reason
    assert [] == dialled


async def test_a_name_without_addresses_has_a_reason(monkeypatch):
    def nothing(*_):
        raise socket.gaierror(socket.EAI_NONAME, "canary")

    monkeypatch.setattr(registry_connections, "look_up", nothing)
    answer = await find(PUBLIC)

    assert (UNREACHABLE, "registry.example: host name not found") == (answer.reason, answer.detail)


class Silent:
    """Names whose servers say nothing until they are told to; all others are known at once."""

    def __init__(self, monkeypatch) -> None:
        self.answered = threading.Event()
        self.asked: list[str] = []
        monkeypatch.setattr(registry_connections, "look_up", self.look_up)

    def look_up(self, host, port, family):
        self.asked.append(host)
        if host.startswith("slow"):
            self.answered.wait()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", port))]


async def test_names_that_are_not_answered_keep_nobody_else_from_being_looked_up(monkeypatch, dialled):
    """Eight look-ups of one name are under way, and two of another; the third name is known at once."""
    names = Silent(monkeypatch)
    hosts = ("slow1.example", "slow2.example", "quick.example")
    async with Asking(RegistryConfig(tuple(map(RegistrySettings, hosts)))) as resolver:
        waiting = [asyncio.create_task(resolver.find(f"slow1.example/a:{one}", [AMD64])) for one in range(8)]
        waiting += [asyncio.create_task(resolver.find(f"slow2.example/a:{one}", [AMD64])) for one in range(2)]
        while len(names.asked) < 2:
            await asyncio.sleep(0.01)
        async with asyncio.timeout(60):
            answer = await resolver.find("quick.example/a:1", [AMD64])
        names.answered.set()
        await asyncio.gather(*waiting)

    assert UNREACHABLE == answer.reason
    assert ["quick.example", "slow1.example", "slow2.example"] == sorted(names.asked)


def test_the_process_ends_although_a_name_is_still_being_looked_up(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(ENDS_WHILE_A_NAME_IS_LOOKED_UP)

    subprocess.run([sys.executable, str(program)], check=True, timeout=120)


ENDS_WHILE_A_NAME_IS_LOOKED_UP = """
import asyncio, time
from lamina.clients.oci import registry_connections as connections

async def story():
    connections.look_up = lambda *_: time.sleep(3600)
    resolver = connections.FilteringResolver(private=False, refused=())
    asking = asyncio.create_task(resolver.resolve("slow.example", 443))
    await asyncio.sleep(0.1)
    await resolver.close()
    await asyncio.gather(asking, return_exceptions=True)

asyncio.run(story())
"""


async def test_proxies_of_the_environment_are_not_used(monkeypatch, dialled):
    Names(monkeypatch, registry_example=[["8.8.8.8"]])
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    await find(PUBLIC)

    assert ["8.8.8.8"] == dialled


# ----------------------------------------------------------------------------------------------------------------- TLS


@pytest.fixture
def authority(tmp_path):
    made = trustme.CA()
    made.cert_pem.write_to_path(tmp_path / "ca.pem")
    return made


def served(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


async def test_an_authority_that_is_configured_is_believed(authority, tmp_path):
    async with Stub(served(authority, "127.0.0.1")) as registry:
        reference = registry.put_image()
        entry = RegistrySettings(registry.host, private=True, ca_file=str(tmp_path / "ca.pem"))

        assert isinstance(await find(RegistryConfig((entry,)), reference), ResolvedImages)


@pytest.mark.parametrize("names", [("127.0.0.1",), ("other.example",)], ids=["unknown authority", "another name"])
async def test_a_certificate_that_is_not_to_be_believed_ends_the_connection(authority, tmp_path, names):
    async with Stub(served(authority, *names)) as registry:
        known = "" if names == ("127.0.0.1",) else str(tmp_path / "ca.pem")
        answer = await find(
            RegistryConfig((RegistrySettings(registry.host, private=True, ca_file=known),)), registry.put_image()
        )

        assert UNREACHABLE == answer.reason
        assert "TLS handshake failed" in answer.detail
        assert [] == registry.asked


async def test_a_plain_registry_that_is_not_configured_as_one_is_told_nothing(monkeypatch):
    """It waits for a question, and we for its certificate."""
    monkeypatch.setattr(registry_fetcher, "PATIENCE", 0.3)
    async with Stub() as registry:
        answer = await find(RegistryConfig((RegistrySettings(registry.host, private=True),)), registry.put_image())

        assert TOO_SLOW == answer.reason
        assert [] == registry.asked


async def test_a_file_of_authorities_is_read_again_when_it_changes(authority, tmp_path):
    other = trustme.CA()
    async with Stub(served(other, "127.0.0.1")) as registry:
        entry = RegistrySettings(registry.host, private=True, ca_file=str(tmp_path / "ca.pem"))
        async with Asking(RegistryConfig((entry,))) as resolver:
            registry.put_image(tag="1")
            registry.put_image(tag="2")
            before = await resolver.find(f"{registry.host}/team/app:1", [AMD64])
            (tmp_path / "ca.pem").write_bytes(authority.cert_pem.bytes() + other.cert_pem.bytes())
            after = await resolver.find(f"{registry.host}/team/app:2", [AMD64])
            (tmp_path / "ca.pem").unlink()
            gone = await resolver.find(f"{registry.host}/team/app:3", [AMD64])

    assert UNREACHABLE == before.reason
    assert isinstance(after, ResolvedImages)
    assert "caFile" in gone.detail


async def test_credentials_go_no_further_than_the_host_they_are_for(authority, tmp_path):
    """Two private registries with TLS; one redirects to the other, and what it shows is its own affair."""
    context = served(authority, "127.0.0.1")
    config = a_config(2)
    manifest = a_manifest(config)
    async with Stub(context) as registry, Stub(context) as store:
        keyring = Keyring.from_secrets([docker_config({registry.host: "ada:pw", store.host: "store:pw"})])
        registry.login = keyring.for_registry(registry.host)[0].basic
        reference = registry.put("team/app", "1", manifest, MANIFEST)
        store.documents["/blob"] = (config, "")

        async def elsewhere(asked: Asked, reply: Answer) -> None:
            await send(
                asked, reply, b"", "307 Temporary Redirect", {"Location": f"{store.server.url}/blob?signature=x"}
            )

        registry.answers[f"/v2/team/app/blobs/{digest_of(config)}"] = elsewhere
        entries = tuple(
            RegistrySettings(one.host, private=True, ca_file=str(tmp_path / "ca.pem")) for one in (registry, store)
        )
        async with Asking(RegistryConfig(entries)) as resolver:
            found = await resolver.find(reference, [AMD64], keyring=keyring)

        assert isinstance(found, ResolvedImages)
        assert registry.login == registry.server.asked[-1].headers["authorization"]
        assert ["GET /blob"] == store.asked
        assert "authorization" not in store.server.asked[0].headers
