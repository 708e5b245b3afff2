"""Which secrets are read, for whom, how often, and what comes of those that make no sense."""

import asyncio
import base64
import json

import msgspec
import pytest

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.lookup_results import BUSY, NOT_ALLOWED, REFUSED, ImageNotFound
from lamina.model.events import NamespaceSeen, PodSeen
from lamina.services.informers.pull_secrets import AT_ONCE, KEPT_FOR, LARGEST, MOST_OF_A_POD, PullSecrets
from lamina.testing import a_pod
from lamina.wire.kube.secret import Secret
from tests.unit.services.fakes import Answer, ScriptedClient, leaping
from tests.unit.services.informers.asking import Entry, found

PASSWORD = "hunter2-hunter2"
OPEN = {"lamina.dev/pull-secrets": "use"}


def a_secret(kind: str = "kubernetes.io/dockerconfigjson", key: str = ".dockerconfigjson", text: str = "") -> bytes:
    said = text or json.dumps({"auths": {"registry.example": {"username": "u", "password": PASSWORD}}})
    return json.dumps({"type": kind, "data": {key: base64.b64encode(said.encode()).decode()}}).encode()


def wanting(*secrets: str, namespace: str = "team"):
    return msgspec.structs.replace(a_pod(namespace=namespace), pull_secrets=secrets)


def logins(*script: Answer, names: tuple[str, ...] = ("s1",)) -> tuple[int, ScriptedClient]:
    """How many credentials come of reading secrets."""
    client = ScriptedClient(*script)

    async def story() -> int:
        secrets = PullSecrets(client)
        secrets.namespace("team", {}, OPEN)
        keyring = await secrets.keyring("team", names)
        return 0 if keyring is None else len(keyring.for_registry("registry.example"))

    return leaping(story()), client


@pytest.mark.parametrize(
    ("annotations", "labels", "read"),
    [
        pytest.param({}, OPEN, ("s1",), id="a label"),
        pytest.param(OPEN, {}, ("s1",), id="an annotation"),
        pytest.param({}, {"lamina.dev/pull-secrets": "no"}, (), id="another word"),
        pytest.param({}, {}, (), id="nothing said"),
    ],
)
def test_secrets_are_read_where_the_namespace_says_so(annotations, labels, read):
    secrets = PullSecrets(ScriptedClient())
    secrets.namespace("team", annotations, labels)
    secrets.namespace("open", OPEN, {})

    assert read == secrets.of(wanting("s1"))
    assert () == secrets.of(wanting())


def test_a_namespace_may_change_its_mind_and_what_was_read_is_forgotten():
    client = ScriptedClient(then=a_secret())

    async def story():
        secrets = PullSecrets(client)
        secrets.namespace("team", {}, OPEN)
        await secrets.keyring("team", ("s1",))
        secrets.namespace("team", {}, {})
        assert () == secrets.of(wanting("s1"))
        assert await secrets.keyring("team", ("s1",)) is None
        secrets.namespace("team", {}, OPEN)
        await secrets.keyring("team", ("s1",))

    leaping(story())
    assert ["GET s1", "GET s1"] == client.short


@pytest.mark.parametrize(
    ("secret", "count"),
    [
        pytest.param(a_secret(), 1, id="a docker configuration"),
        pytest.param(
            a_secret("kubernetes.io/dockercfg", ".dockercfg", json.dumps({"registry.example": {"auth": "dTpw"}})),
            1,
            id="the older kind",
        ),
        pytest.param(a_secret("Opaque"), 0, id="another type"),
        pytest.param(a_secret(key="other"), 0, id="another key"),
        pytest.param(a_secret(text="{}"), 0, id="nothing in it"),
        pytest.param(a_secret(text="not json"), 0, id="no JSON in it"),
        pytest.param(a_secret(text="x" * (LARGEST + 1)), 0, id="too large"),
        pytest.param(b"[]", 0, id="no secret"),
        pytest.param(b'{"type": "kubernetes.io/dockerconfigjson"}', 0, id="no data"),
        pytest.param(ApiError("GET secret", 403, "Forbidden", PASSWORD), 0, id="not allowed"),
        pytest.param(ApiError("GET secret", 404, "NotFound"), 0, id="not there"),
        pytest.param(UnreachableError("GET secret", "no answer"), 0, id="no answer"),
    ],
)
def test_what_cannot_be_used_is_as_if_it_were_not_there_and_nothing_of_it_is_told(secret, count, caplog):
    assert count == logins(secret)[0]
    assert PASSWORD not in caplog.text
    assert "dTpw" not in caplog.text


def test_several_secrets_are_one_keyring():
    other = a_secret(text=json.dumps({"auths": {"registry.example": {"username": "v", "password": "w"}}}))
    assert 2 == logins(a_secret(), other, names=("s1", "s2"))[0]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../pods", "A", "a b", "x" * 300, "a?watch=1", "ä"])
def test_what_no_secret_can_be_called_is_not_read(name):
    secrets = PullSecrets(ScriptedClient())
    secrets.namespace("team", {}, OPEN)
    assert ("team-a.b",) == secrets.of(wanting(name, "team-a.b"))


def test_names_cannot_lead_elsewhere():
    _, client = logins(a_secret(), names=("../../pods/x?watch=1",))
    assert ["/api/v1/namespaces/team/secrets/..%2F..%2Fpods%2Fx%3Fwatch%3D1"] == [one.path for one in client.asked]


def test_a_pod_has_only_so_many():
    secrets = PullSecrets(ScriptedClient())
    secrets.namespace("team", {}, OPEN)
    assert MOST_OF_A_POD == len(secrets.of(wanting(*(f"s{number}" for number in range(100)))))


def test_a_secret_is_read_once_a_minute_whatever_it_says():
    client = ScriptedClient(a_secret(), ApiError("GET secret", 403, "Forbidden"), then=a_secret())

    async def story():
        secrets = PullSecrets(client)
        secrets.namespace("team", {}, OPEN)
        for name in ("s1", "s2"):
            for _ in range(5):
                await secrets.keyring("team", (name,))
        await asyncio.sleep(KEPT_FOR + 1.0)
        await secrets.keyring("team", ("s1",))

    leaping(story())
    assert ["GET s1", "GET s2", "GET s1"] == client.short


def test_many_who_wait_for_the_same_secret_read_it_once_and_one_who_gives_up_ends_it_for_nobody():
    client = ScriptedClient(then=a_secret(), pause=1.0)

    async def story():
        secrets = PullSecrets(client)
        secrets.namespace("team", {}, OPEN)
        impatient = asyncio.create_task(secrets.keyring("team", ("s1",)))
        await asyncio.sleep(0.5)
        others = [asyncio.create_task(secrets.keyring("team", ("s1", "s2"))) for _ in range(100)]
        await asyncio.sleep(0)
        impatient.cancel()
        rings = await asyncio.gather(*others)
        return {len(ring.for_registry("registry.example")) for ring in rings if ring is not None}

    assert {1} == leaping(story())
    assert ["GET s1", "GET s2"] == client.short


def test_only_a_few_are_read_at_a_time_however_many_are_named():
    client = ScriptedClient(then=a_secret(), pause=1.0)

    async def story():
        secrets = PullSecrets(client)
        secrets.namespace("team", {}, OPEN)
        await asyncio.gather(*(secrets.keyring("team", (f"s{number}",)) for number in range(40)))

    leaping(story())
    assert (AT_ONCE, 40) == (client.most_underway, len(client.asked))


def test_a_secret_is_looked_through_once_a_minute_however_large_it_is(monkeypatch):
    """Whoever may write secrets could else make every image of every pod cost as much as they like."""
    looked_through = []
    from_secrets = Keyring.from_secrets

    def noted(said):
        looked_through.append(1)
        return from_secrets(said)

    monkeypatch.setattr(Keyring, "from_secrets", noted)

    async def story():
        secrets = PullSecrets(ScriptedClient(then=a_secret()))
        secrets.namespace("team", {}, OPEN)
        for _ in range(50):
            await secrets.keyring("team", ("s1", "s2"))

    leaping(story())
    assert 2 == len(looked_through)


def test_a_namespace_that_changes_its_mind_while_a_secret_is_read_is_heeded():
    client = ScriptedClient(then=a_secret(), pause=1.0)

    async def story():
        secrets = PullSecrets(client)
        secrets.namespace("team", {}, OPEN)
        reading = asyncio.create_task(secrets.keyring("team", ("s1",)))
        await asyncio.sleep(0.5)
        secrets.namespace("team", {}, {})
        opened = await reading
        secrets.namespace("team", {}, OPEN)
        await secrets.keyring("team", ("s1",))
        return opened

    assert leaping(story()) is None
    assert ["GET s1", "GET s1"] == client.short


def test_nothing_prints_a_secret():
    assert PASSWORD not in repr(Secret("x", {".dockerconfigjson": PASSWORD.encode()}))


# ------------------------------------------------------------------------------------------------------------ at the door


def test_the_registry_is_asked_with_the_secrets_of_the_pod_that_asks():
    async def story():
        async with Entry(
            {"app:1": (0.1, found("app:1"))}, secrets=PullSecrets(ScriptedClient(then=a_secret()))
        ) as entry:
            entry.door.put(NamespaceSeen("team", {}, OPEN))
            entry.door.put(PodSeen(wanting("s1")))
            await asyncio.sleep(1.0)
            return [ring is not None for ring in entry.finder.keyrings], entry.told

    assert ([True], [(0.1, "learned app:1"), (0.1, "p1")]) == leaping(story())


def test_what_is_refused_to_others_may_be_open_to_these_secrets_and_if_not_is_not_asked_again_for_a_minute():
    async def story():
        refused = ImageNotFound(REFUSED, "log in")
        async with Entry({"app:1": (0.1, refused)}, secrets=PullSecrets(ScriptedClient(then=a_secret()))) as entry:
            entry.finder.remembered["app:1"] = refused
            entry.door.put(NamespaceSeen("team", {}, OPEN))
            for name in ("p1", "p2", "p3"):
                pod = msgspec.structs.replace(wanting("s1"), name=name, uid=name)
                entry.door.put(PodSeen(pod))
                await asyncio.sleep(20.0 if name == "p1" else 60.0)
            return entry.finder.asked, entry.told

    assert (["app:1", "app:1"], [(0.1, "p1"), (20.0, "p2"), (80.1, "p3")]) == leaping(story())


def test_secrets_are_not_read_for_a_registry_that_nobody_may_ask():
    client = ScriptedClient(then=a_secret())

    async def story():
        async with Entry(secrets=PullSecrets(client)) as entry:
            entry.finder.remembered["app:1"] = ImageNotFound(NOT_ALLOWED, "no rule names it")
            entry.door.put(NamespaceSeen("team", {}, OPEN))
            entry.door.put(PodSeen(wanting("s1")))
            await asyncio.sleep(1.0)
            return entry.told

    assert ([(0.0, "p1")], []) == (leaping(story()), client.short)


def test_who_asked_too_often_with_secrets_is_asked_again_like_anybody_else():
    async def story():
        answers = {"app:1": (0.1, ImageNotFound(BUSY, "later"))}
        async with Entry(answers, secrets=PullSecrets(ScriptedClient(then=a_secret()))) as entry:
            entry.door.put(NamespaceSeen("team", {}, OPEN))
            for name in ("p1", "p2"):
                entry.door.put(PodSeen(msgspec.structs.replace(wanting("s1"), name=name, uid=name)))
                await asyncio.sleep(5.0)
            return entry.finder.asked

    assert ["app:1", "app:1"] == leaping(story())


def test_a_slow_api_server_delays_nobody_past_the_deadline():
    async def story():
        client = ScriptedClient(then=a_secret(), pause=4.0)
        async with Entry({"app:1": (0.1, found("app:1"))}, secrets=PullSecrets(client)) as entry:
            entry.door.put(NamespaceSeen("team", {}, OPEN))
            entry.door.put(PodSeen(wanting("s1")))
            await asyncio.sleep(10.0)
            return entry.told

    assert [(2.0, "p1"), (4.1, "learned app:1")] == leaping(story())
