"""Which credentials are for which image."""

import base64
import json

import pytest

from lamina.clients.oci.keyring import (
    MOST_ENTRIES,
    MOST_LOGINS,
    Credential,
    CredentialHelper,
    Keyring,
    fingerprint_of_logins,
)
from lamina.model.errors import InputError
from tests.unit.clients.oci.registry_stub import docker_config

HUB = "https://index.docker.io/v1/"


def ring(auths):
    return Keyring.from_secrets([docker_config(auths)])


def names(keyring, host, repository="team/app"):
    return [login.username for login in keyring.for_registry(host, repository) if isinstance(login, Credential)]


def from_file(tmp_path, document):
    path = tmp_path / "config.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return Keyring.from_file(path)


@pytest.mark.parametrize(
    ("key", "host", "matches"),
    [
        pytest.param("registry.example", "registry.example", True, id="the host"),
        pytest.param("https://registry.example", "registry.example", True, id="an address"),
        pytest.param("https://registry.example/v2/", "registry.example", True, id="an address with a version"),
        pytest.param("Registry.Example", "registry.example", True, id="letters do not matter"),
        pytest.param("registry.example:5000", "registry.example:5000", True, id="the port"),
        pytest.param("registry.example:5000", "registry.example", False, id="a port too many"),
        pytest.param("registry.example", "registry.example:5000", False, id="a port too few"),
        pytest.param("*.example", "registry.example", True, id="any label"),
        pytest.param("reg*.example", "registry.example", True, id="part of a label"),
        pytest.param("*.example", "a.registry.example", False, id="one star is one label"),
        pytest.param("*", "registry.example", False, id="one star is not everything"),
        pytest.param("example", "registry.example", False, id="the end alone"),
        pytest.param("registry.example", "evil-registry.example", False, id="ends alike"),
        pytest.param(HUB, "docker.io", True, id="Docker Hub as docker login writes it"),
        pytest.param("docker.io", "docker.io", True, id="Docker Hub"),
        pytest.param("registry-1.docker.io", "docker.io", True, id="Docker Hub's own host"),
        pytest.param("[::1]:5000", "[::1]:5000", True, id="IPv6"),
        pytest.param("[::1]", "[::1]", True, id="IPv6 without a port"),
        pytest.param("registry.example/team", "registry.example", True, id="a path"),
        pytest.param("registry.example/team/app", "registry.example", True, id="the whole path"),
        pytest.param("registry.example/tea", "registry.example", False, id="half a word of the path"),
        pytest.param("registry.example/other", "registry.example", False, id="another path"),
    ],
)
def test_an_entry_is_for_the_images_its_key_names(key, host, matches):
    assert (["ada"] if matches else []) == names(ring({key: "ada:pw"}), host)


def test_the_longest_path_is_tried_first():
    keyring = ring(
        {
            "*.example": "any:pw",
            "registry.example": "all:pw",
            "registry.example/team": "team:pw",
            "registry.example/team/app": "app:pw",
        }
    )

    assert ["app", "team", "all", "any"] == names(keyring, "registry.example")


def test_only_so_many_are_tried():
    keyring = Keyring.from_secrets([docker_config({"registry.example": f"user{n}:pw"}) for n in range(20)])

    assert MOST_LOGINS == len(keyring.for_registry("registry.example"))


def test_an_entry_may_hold_an_identity_token_or_plain_fields():
    document = {
        "auths": {
            "a.example": {"identitytoken": "refresh", "auth": base64.b64encode(b"<token>:").decode()},
            "b.example": {"username": "ada", "password": "p:w"},
            "c.example": {},
        }
    }
    keyring = Keyring.from_secrets([json.dumps(document).encode()])

    assert (Credential("<token>", "", "refresh"),) == keyring.for_registry("a.example")
    assert (Credential("ada", "p:w"),) == keyring.for_registry("b.example")
    assert () == keyring.for_registry("c.example")


def test_an_older_secret_is_its_entries_alone():
    old = json.dumps({"registry.example": {"username": "ada", "password": "pw"}}).encode()

    assert ["ada"] == names(Keyring.from_secrets([old]), "registry.example")


@pytest.mark.parametrize(
    "secret",
    [
        *(b"", b"{", b"[]", b"null", b'{"auths": []}', b'{"auths": {"a": 5}}', b"\xff", b"[" * 100_000),
        b'{"auths": {"a.example": {"auth": "!!!"}}}',
        b'{"auths": {"a.example": {"auth": "bm8gY29sb24="}}}',
        b'{"auths": {"a.example": {"username": "a\\r\\nX: y", "password": "b"}}}',
        b" " * (1024 * 1024 + 1),
    ],
    ids=lambda secret: repr(secret[:40]),
)
def test_a_secret_that_cannot_be_read_is_counted_and_harms_no_other(secret):
    keyring = Keyring.from_secrets([secret, docker_config({"registry.example": "ada:pw"})])

    assert 1 == keyring.unreadable
    assert ["ada"] == names(keyring, "registry.example")
    assert () == keyring.for_registry("a.example")


def test_a_secret_never_names_a_program():
    """Whoever may write to a namespace must not start anything here."""
    secret = docker_config({}, credsStore="desktop", credHelpers={"registry.example": "ecr-login"})

    assert () == Keyring.from_secrets([secret]).for_registry("registry.example")


def test_so_many_entries_are_kept_and_the_others_counted():
    keyring = ring({f"r{n}.example": "ada:pw" for n in range(MOST_ENTRIES + 5)})

    assert 5 == keyring.unreadable


def test_so_many_entries_are_kept_of_several_secrets():
    secrets = [docker_config({f"r{n}.s{m}.example": "ada:pw" for n in range(600)}) for m in range(3)]

    assert f"Keyring({MOST_ENTRIES} entries)" == repr(Keyring.from_secrets(secrets))


def test_a_file_may_name_helpers_and_a_store(tmp_path):
    keyring = from_file(
        tmp_path,
        {
            "auths": {"a.example": {}},
            "credHelpers": {"a.example": "ecr-login", "docker.io": "pass"},
            "credsStore": "desktop",
        },
    )

    assert (CredentialHelper("ecr-login", "a.example"),) == keyring.for_registry("a.example")
    assert (CredentialHelper("pass", HUB),) == keyring.for_registry("docker.io")
    assert (CredentialHelper("desktop", "other.example"),) == keyring.for_registry("other.example")


@pytest.mark.parametrize("name", ["../evil", "a/b", "", "a b", "A", "a;b", "a\n", "-a", "a..b", "x" * 65])
def test_a_helper_has_a_plain_name(tmp_path, name):
    with pytest.raises(InputError, match="a helper name has only a-z"):
        from_file(tmp_path, {"credHelpers": {"a.example": name}})


@pytest.mark.parametrize(
    ("document", "told"),
    [
        pytest.param(
            '{"auths": {"a.example": {"auth": 5, "password": "canary"}}}', "is not a Docker configuration", id="shape"
        ),
        pytest.param("canary", "is not a Docker configuration", id="no JSON"),
        pytest.param('{"auths": {"a.example": {"auth": "canary!"}}}', "1 of the entries cannot be decoded", id="entry"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_without_what_is_in_it(tmp_path, document, told):
    with pytest.raises(InputError, match=told) as caught:
        from_file(tmp_path, document)
    assert "canary" not in str(caught.value)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(InputError, match="cannot be read: no such file"):
        Keyring.from_file(tmp_path / "missing")


def test_logins_are_told_apart_without_being_shown():
    one, other = Credential("ada", "canary"), Credential("ada", "other")

    assert fingerprint_of_logins([one]) == fingerprint_of_logins([Credential("ada", "canary")])
    assert 4 == len({fingerprint_of_logins(logins) for logins in ([], [one], [other], [one, other])})
    assert "canary" not in fingerprint_of_logins([one]) + repr(one) + repr(ring({"a.example": "ada:canary"}))
