"""From a kubeconfig to what a request carries."""

import base64
import ssl
from pathlib import Path

import pytest

from lamina.clients.kube.access import ApiAccess, load_access
from lamina.clients.kube.credentials import FixedCredential
from lamina.clients.kube.tls_contexts import TlsSettings
from lamina.model.errors import InputError
from tests.unit.clients.kube.kubeconfigs import (
    CANARY,
    authority_pem,
    client_certificate,
    config,
    encoded,
    saved,
)

CERTIFICATE, KEY = client_certificate()
PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", "interactiveMode": "Never"}


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """No configuration but that of the test."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def access(tmp_path):
    """Load a kubeconfig with one user and one cluster."""

    def load(user=None, cluster=None) -> ApiAccess:
        return load_access(saved(tmp_path / "config", config(user=user, cluster=cluster)))

    return load


def said(load, **parts) -> str:
    with pytest.raises(InputError) as caught:
        load(**parts)
    return str(caught.value)


# ----------------------------------------------------------------------------------------------------------- headers


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param({}, {}, id="nobody"),
        pytest.param({"token": " abc\n"}, {"Authorization": "Bearer abc"}, id="token"),
        pytest.param(
            {"username": "ada", "password": "p:w"},
            {"Authorization": f"Basic {base64.b64encode(b'ada:p:w').decode()}"},
            id="name and password",
        ),
        pytest.param({"tokenFile": "token"}, {"Authorization": "Bearer of-the-file"}, id="token file"),
        pytest.param(
            {"token": "old", "tokenFile": "token"}, {"Authorization": "Bearer of-the-file"}, id="the file is newer"
        ),
        pytest.param({"token": "t", "exec": PLUGIN}, {"Authorization": "Bearer t"}, id="a token before a plugin"),
        pytest.param(
            {"token": "t", "as": "ben", "as-groups": ["dev"], "as-uid": "1", "as-user-extra": {"a/B": ["c"]}},
            {
                "Authorization": "Bearer t",
                "Impersonate-User": "ben",
                "Impersonate-Group": "dev",
                "Impersonate-Uid": "1",
                "Impersonate-Extra-a%2Fb": "c",
            },
            id="as somebody else",
        ),
    ],
)
async def test_a_user_is_turned_into_headers(access, tmp_path, user, expected):
    (tmp_path / "token").write_text("of-the-file\n")

    assert expected == await access(user=user).headers()


async def test_over_plain_http_no_credentials_are_sent(access):
    found = access(user={"token": CANARY, "as": "ben"}, cluster={"server": "http://127.0.0.1:8001"})

    assert ({"Impersonate-User": "ben"}, None) == (await found.headers(), found.tls())


async def test_headers_can_be_changed_by_who_asked_for_them(access):
    found = access(user={"token": "t"})
    (await found.headers())["Authorization"] = "other"

    assert {"Authorization": "Bearer t"} == await found.headers()


# ---------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param({"token": f"{CANARY}\nX: y"}, "token: the token has characters that a header cannot contain", id="two lines"),
        pytest.param({"token": f"{CANARY}\r"[:-1] + "\x00"}, "token: the token has characters", id="NUL"),
        pytest.param({"token": f"{CANARY} {CANARY}"}, "token: the token has characters", id="a space"),
        pytest.param({"token": CANARY + "x" * 70_000}, "token: the token is too long; at most 64 KiB", id="long"),
        pytest.param({"token": 5}, "users[0].user.token: expected text; put it in quotes", id="a number"),
        pytest.param({"token": CANARY, "username": "a"}, "a username or password is given as well", id="two ways"),
        pytest.param({"auth-provider": {"name": "gcp"}}, "'gcp' is not supported, as in kubectl; install gke", id="gcp"),
        pytest.param({"auth-provider": {"name": "x"}}, "'x' is not supported, as in kubectl; use its", id="other"),
        pytest.param({"tokenFile": "absent"}, "absent: cannot be read: no such file or directory", id="no token file"),
        pytest.param({"tokenFile": "config"}, "config: the token has characters that a header cannot", id="no token in it"),
        pytest.param({"client-certificate": "a"}, "its key is missing; add client-key", id="no key"),
        pytest.param(
            {"client-certificate-data": "?", "client-key-data": "?"},
            "users[0].user.client-certificate-data: expected base64",
            id="not base64",
        ),
        pytest.param(
            {"client-certificate-data": encoded(CANARY.encode()), "client-key-data": encoded(CANARY.encode())},
            "the client certificate and its key are unusable",
            id="no certificate",
        ),
        pytest.param(
            {"client-certificate-data": encoded(CERTIFICATE), "client-key-data": encoded(client_certificate(1)[1])},
            "unusable (key values mismatch); check that they belong together",
            id="another's key",
        ),
        pytest.param({"as-groups": ["x"]}, "need a user name; add `as`", id="groups of nobody"),
        pytest.param({"as": "x", "as-groups": ["y", "z"]}, "only one group is supported", id="two groups"),
        pytest.param({"as": "x\r\ny"}, "as: impersonation values must be printable ASCII", id="a line break in a name"),
        pytest.param({"exec": {**PLUGIN, "apiVersion": "client.authentication.k8s.io/v1alpha1"}}, "use client.authentication.k8s.io/v1 or", id="old plugin"),
        pytest.param({"exec": {**PLUGIN, "command": ""}}, "exec.command: the plugin has no command", id="no command"),
        pytest.param({"exec": {**PLUGIN, "interactiveMode": "Always"}}, "the plugin needs a terminal", id="terminal"),
        pytest.param({"exec": {**PLUGIN, "env": [{"value": "x"}]}}, "env: every variable needs a name", id="no name"),
        pytest.param({"exec": {**PLUGIN, "args": [5]}}, "args: expected a list of texts", id="numbers"),
        pytest.param({"exec": 5}, "users[0].user.exec: expected a mapping", id="no plugin"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_that_names_its_place_and_shows_no_secret(access, user, expected):
    line = said(access, user=user)

    assert expected in line
    assert "\n" not in line
    assert CANARY not in line


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        pytest.param(
            {"insecure-skip-tls-verify": True, "certificate-authority-data": encoded(authority_pem())},
            "insecure-skip-tls-verify: a certificate authority is given as well",
            id="both",
        ),
        pytest.param({"insecure-skip-tls-verify": "yes!"}, "expected true or false", id="not a flag"),
        pytest.param({"certificate-authority": "absent"}, "absent: cannot be read", id="absent"),
        pytest.param({"certificate-authority": "config"}, "config: contains no readable certificates", id="no PEM"),
        pytest.param(
            {"certificate-authority-data": encoded(b"x")},
            "certificate-authority-data: contains no readable cert",
            id="no PEM in it",
        ),
    ],
)
def test_a_mistake_about_trust_is_told(access, cluster, expected):
    assert expected in said(access, cluster=cluster)


def test_without_any_configuration_it_is_said_where_it_could_be():
    expected = (
        "kubeconfig: no cluster configured; name a file with --kubeconfig or $KUBECONFIG, or create ~/.kube/config"
    )
    assert expected == said(load_access)


async def test_no_secret_is_in_a_repr(access):
    found = access(
        user={"token": CANARY, "client-certificate-data": encoded(CERTIFICATE), "client-key-data": encoded(KEY)}
    )

    shown = repr(vars(found)) + repr(found) + repr(TlsSettings(key=CANARY.encode())) + repr(vars(found._contexts))
    assert CANARY not in shown
    assert "PRIVATE" not in shown


def test_a_user_without_a_home_is_told_the_same(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)

    assert "no cluster configured" in said(load_access)


# --------------------------------------------------------------------------------------------------------------- TLS


def test_the_context_is_the_same_object_until_a_file_changes(access, tmp_path, monkeypatch):
    (tmp_path / "ca.crt").write_bytes(authority_pem(0))
    found = access(cluster={"certificate-authority": "ca.crt"})
    first = found.tls()
    monkeypatch.setattr(found._contexts._own, "_every", 0.0)

    assert found.tls() is first

    (tmp_path / "ca.crt").write_bytes(authority_pem(1))
    second = found.tls()
    assert second is not first
    assert [(("organizationName", "authority 1"),)] == [one["subject"][0] for one in second.get_ca_certs()]

    (tmp_path / "ca.crt").unlink()
    assert found.tls() is second
    assert 1 == found.troubles


def test_a_certificate_that_is_replaced_is_looked_at_at_once_after_a_401(access, tmp_path):
    for name, content in zip(("cert", "key"), client_certificate(0), strict=True):
        (tmp_path / name).write_bytes(content)
    found = access(user={"client-certificate": "cert", "client-key": "key"})
    first = found.tls()
    (tmp_path / "cert").write_bytes(client_certificate(1)[0])
    found.refused()
    assert found.tls() is first, "the key of the new one is not there yet"
    (tmp_path / "key").write_bytes(client_certificate(1)[1])
    found.refused({})

    assert found.tls() is not first
    assert 1 == found.troubles


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        pytest.param({}, (ssl.CERT_REQUIRED, True), id="the system's authorities"),
        pytest.param(
            {"certificate-authority-data": encoded(authority_pem())}, (ssl.CERT_REQUIRED, True), id="an authority"
        ),
        pytest.param({"insecure-skip-tls-verify": True}, (ssl.CERT_NONE, False), id="insecure"),
    ],
)
def test_the_server_is_verified_unless_somebody_says_not_to(access, cluster, expected):
    context = access(cluster=cluster).tls()

    assert expected == (context.verify_mode, context.check_hostname)
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_an_encrypted_key_is_told_and_nobody_is_asked_for_its_passphrase(access):
    from cryptography.hazmat.primitives import serialization as pem

    key = pem.load_pem_private_key(KEY, None)
    locked = key.private_bytes(
        pem.Encoding.PEM, pem.PrivateFormat.TraditionalOpenSSL, pem.BestAvailableEncryption(b"x")
    )
    user = {"client-certificate-data": encoded(CERTIFICATE), "client-key-data": encoded(locked)}

    assert "the key is encrypted and no prompt is possible" in said(access, user=user)


def test_an_access_can_be_put_together_by_hand():
    found = ApiAccess("http://127.0.0.1:1", FixedCredential(), TlsSettings())

    assert ("default", None, 0) == (found.namespace, found.tls(), found.troubles)
