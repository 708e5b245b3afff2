"""Files with which clients find the façade."""

import json

import pytest

from lamina.apiserver.kubeconfig import is_own_kubeconfig, kubeconfig, write_kubeconfig, write_service_account


def test_a_kubeconfig_is_readable_by_its_owner_only(tmp_path):
    path = tmp_path / "config"
    write_kubeconfig(path, "http://127.0.0.1:1")

    assert 0o600 == path.stat().st_mode & 0o777
    assert "http://127.0.0.1:1" == json.loads(path.read_text())["clusters"][0]["cluster"]["server"]
    assert [path] == list(tmp_path.iterdir())


def test_a_kubeconfig_names_the_authority_by_its_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ca.crt").write_text("x")
    found = json.loads(kubeconfig("https://127.0.0.1:1", (tmp_path / "ca.crt").relative_to(tmp_path)))

    assert str(tmp_path / "ca.crt") == found["clusters"][0]["cluster"]["certificate-authority"]


@pytest.mark.parametrize(
    ("url", "authority", "skipped"),
    [
        pytest.param("http://127.0.0.1:1", False, True, id="no TLS: there is no certificate"),
        pytest.param("https://127.0.0.1:1", True, False, id="TLS"),
        pytest.param("https://127.0.0.1:1", False, False, id="TLS with an authority that the client knows"),
    ],
)
def test_clients_check_certificates_wherever_there_are_any(tmp_path, url, authority, skipped):
    found = json.loads(kubeconfig(url, tmp_path / "ca.crt" if authority else None))

    assert skipped is found["clusters"][0]["cluster"].get("insecure-skip-tls-verify", False)


@pytest.mark.parametrize(
    ("content", "own"),
    [
        pytest.param(kubeconfig("http://127.0.0.1:1"), True, id="written by a façade"),
        pytest.param("apiVersion: v1\nkind: Config\n", False, id="YAML"),
        pytest.param('{"users": [{"user": {"token": "secret"}}]}', False, id="another user"),
        pytest.param("{}", False, id="empty"),
        pytest.param("[]", False, id="a list"),
        pytest.param(kubeconfig("http://127.0.0.1:1") + " " * 100_000, False, id="too long"),
    ],
)
def test_only_kubeconfigs_of_a_facade_may_be_replaced(tmp_path, content, own):
    (tmp_path / "config").write_text(content)

    assert own is is_own_kubeconfig(tmp_path / "config")


def test_a_service_account_has_the_files_that_programs_in_pods_read(tmp_path):
    (tmp_path / "authority").write_text("pem")
    written = write_service_account(tmp_path / "account", tmp_path / "authority", "team")

    assert {"token": "lamina-facade", "namespace": "team", "ca.crt": "pem"} == {
        path.name: path.read_text() for path in written
    }
