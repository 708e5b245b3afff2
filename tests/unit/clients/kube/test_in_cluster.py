"""Access from inside a pod."""

import pytest

from lamina.clients.kube import in_cluster
from lamina.clients.kube.access import load_access
from lamina.model.errors import InputError
from tests.unit.clients.kube.kubeconfigs import CANARY, Clock, authority_pem


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of a service account."""
    (tmp_path / "token").write_text(CANARY)
    (tmp_path / "ca.crt").write_bytes(authority_pem())
    (tmp_path / "namespace").write_text("team-a")
    for function in ("namespace", "credential_source", "tls_settings"):
        original = getattr(in_cluster, function)
        monkeypatch.setattr(original, "__defaults__", (tmp_path,))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        pytest.param("10.0.0.1", "https://10.0.0.1:443", id="IPv4"),
        pytest.param("fd00::1", "https://[fd00::1]:443", id="IPv6"),
        pytest.param("kubernetes.default.svc", "https://kubernetes.default.svc:443", id="a name"),
    ],
)
def test_the_address_comes_from_the_environment(host, expected):
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}

    assert expected == in_cluster.server(environ)


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        pytest.param("a/b", "443", "$KUBERNETES_SERVICE_HOST: expected an IP address or a host name", id="host"),
        pytest.param("h", "70000", "$KUBERNETES_SERVICE_PORT: expected a port number from 1 to 65535", id="too large"),
        pytest.param("h", "https", "$KUBERNETES_SERVICE_PORT: expected a port number from 1 to 65535", id="no number"),
    ],
)
def test_an_address_that_cannot_be_used_is_told(host, port, expected):
    with pytest.raises(InputError) as caught:
        in_cluster.server({"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port})

    assert expected == str(caught.value)


async def test_a_pod_uses_its_own_account(folder):
    access = load_access()

    assert ("https://10.0.0.1:443", "team-a") == (access.server, access.namespace)
    assert {"Authorization": f"Bearer {CANARY}"} == await access.headers()
    assert 1 == len(access.tls().get_ca_certs())


def test_the_namespace_may_be_given_by_the_environment(folder, monkeypatch):
    monkeypatch.setenv("POD_NAMESPACE", "team-b")

    assert "team-b" == load_access().namespace


def test_without_a_namespace_it_is_the_default(folder):
    (folder / "namespace").unlink()

    assert "default" == load_access().namespace


def test_a_pod_without_a_token_is_told_what_to_check(folder):
    (folder / "token").unlink()

    with pytest.raises(InputError, match="does the pod have a service account, with automountServiceAccountToken"):
        load_access()


def test_a_context_makes_no_sense_in_a_pod(folder):
    with pytest.raises(InputError, match="a context needs a kubeconfig, and there is none"):
        load_access(context="prod")


async def test_a_token_that_is_replaced_is_used_within_a_second_and_at_once_after_a_401(folder):
    from lamina.clients.kube.credentials import TokenFile

    clock = Clock()
    identity = TokenFile(folder / "token", clock)
    (folder / "token").write_text("second")
    assert f"Bearer {CANARY}" == await identity.authorization()

    identity.refused(None)
    assert "Bearer second" == await identity.authorization()

    (folder / "token").write_text("third")
    clock.pass_by(1.0)
    assert "Bearer third" == await identity.authorization()


@pytest.mark.parametrize("content", [b"", b"\n", b"a\nb", b"\xff\xfe"])
async def test_a_token_file_that_holds_no_token_for_a_moment_is_bridged(folder, content, caplog):
    from lamina.clients.kube.credentials import TokenFile

    clock = Clock()
    identity = TokenFile(folder / "token", clock)
    (folder / "token").write_bytes(content)
    clock.pass_by(1.0)

    assert f"Bearer {CANARY}" == await identity.authorization()
    assert 1 == identity.troubles
    assert CANARY not in caplog.text + str([vars(record) for record in caplog.records])
