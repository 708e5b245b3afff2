"""`lamina catalog from-registry` and `from-cluster`: whom they may ask, and what a person is told who made a mistake."""

import sys
from pathlib import Path

import pytest

from lamina.cli.catalog.registry_images import RegistryQueryOptions
from lamina.cli.main import run
from lamina.clients.oci.registry_config import RegistrySettings
from lamina.wire.catalog_file import read_catalog
from tests.unit.clients.kube.kubeconfigs import config, saved


def lamina(monkeypatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["lamina", "catalog", *map(str, arguments)])
    return run()


def rules_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "registries.yaml"
    path.write_text(text, encoding="utf-8")
    return path


# ------------------------------------------------------------------------------------------------------------- manners


def test_who_names_a_registry_has_allowed_it_and_nothing_more():
    rules = RegistryQueryOptions().rules(["nginx", "quay.io/a:1", "quay.io/b:1"])

    assert (RegistrySettings("docker.io"), RegistrySettings("quay.io")) == rules.registries
    assert not rules.from_nodes


@pytest.mark.parametrize(
    ("manners", "expected"),
    [
        pytest.param(
            RegistryQueryOptions(private=True), RegistrySettings("r.example:5000", private=True), id="private"
        ),
        pytest.param(
            RegistryQueryOptions(plain_http=True), RegistrySettings("r.example:5000", plain_http=True), id="plain http"
        ),
    ],
)
def test_private_addresses_and_plain_http_need_to_be_said(manners, expected):
    assert (expected,) == manners.rules(["r.example:5000/a:1"]).registries


def test_docker_hub_is_never_asked_without_tls():
    assert (RegistrySettings("docker.io"),) == RegistryQueryOptions(plain_http=True).rules(["nginx"]).registries


def test_what_the_file_says_of_a_registry_holds(tmp_path):
    file = rules_file(tmp_path, "registries: [{host: quay.io, mirrors: [m.example]}, {host: gcr.io}]")
    rules = RegistryQueryOptions(registries=file).rules(["quay.io/a:1"])

    assert [("quay.io", ("m.example",)), ("gcr.io", ())] == [(one.host, one.mirrors) for one in rules.registries]


def test_what_the_file_says_holds_in_whatever_spelling(tmp_path):
    """Two entries for one registry would leave it to chance which of them counts."""
    file = rules_file(tmp_path, "registries: [{host: Registry.Example, private: true}]")
    rules = RegistryQueryOptions(registries=file).rules(["registry.example/a:1", "REGISTRY.example/b:1"])

    assert [("Registry.Example", True)] == [(one.host, one.private) for one in rules.registries]


@pytest.mark.parametrize(("text", "expected"), [("{}", True), ("fromNodes: false", False)], ids=["unsaid", "forbidden"])
def test_registries_of_nodes_are_asked_unless_the_file_forbids_it(tmp_path, text, expected):
    assert expected == RegistryQueryOptions(registries=rules_file(tmp_path, text)).rules((), from_nodes=True).from_nodes


# ------------------------------------------------------------------------------------------------------------ mistakes


def test_every_reference_that_is_none_is_told_before_anybody_is_asked(monkeypatch, capsys, tmp_path):
    code = lamina(monkeypatch, "from-registry", tmp_path / "c.jsonl", "http://x/y", "ok:1", "app/UPPER:1")

    assert 2 == code
    assert 2 == len(capsys.readouterr().err.splitlines())
    assert not (tmp_path / "c.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(("--platform", "amd64"), "--platform: 'amd64' is not a platform", id="platform"),
        pytest.param(("--registries", "no-such-file"), "no-such-file: cannot be read", id="registries"),
        pytest.param(("--docker-config", "no-such-file"), "no-such-file: cannot be read", id="docker config"),
    ],
)
def test_a_mistake_in_an_option_is_one_line(monkeypatch, capsys, tmp_path, words, told):
    assert 2 == lamina(monkeypatch, "from-registry", tmp_path / "c.jsonl", "127.0.0.1:1/a:1", *words)
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


def test_a_registry_on_a_private_address_is_not_asked_without_leave(monkeypatch, capsys, tmp_path):
    assert 1 == lamina(monkeypatch, "from-registry", tmp_path / "c.jsonl", "127.0.0.1:1/a:1", "127.0.0.1:1/b:1")
    lines = capsys.readouterr().err.splitlines()

    assert ["127.0.0.1:1/a:1", "127.0.0.1:1/b:1"] == [line.partition(": ")[0] for line in lines]
    assert all("loopback" in line for line in lines)
    assert not (tmp_path / "c.jsonl").exists()


def test_a_registry_that_does_not_answer_is_a_line_for_each_image(monkeypatch, capsys, tmp_path):
    words = ("127.0.0.1:1/a:1", "--private", "--plain-http")
    assert 1 == lamina(monkeypatch, "from-registry", tmp_path / "c.jsonl", *words)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("127.0.0.1:1/a:1: ")


def test_what_the_file_had_stays_when_nothing_is_found(monkeypatch, capsys, tmp_path):
    file = tmp_path / "c.jsonl"
    assert 0 == lamina(monkeypatch, "generate", file, "--images", "3")
    before = file.read_bytes()
    assert 1 == lamina(monkeypatch, "from-registry", file, "127.0.0.1:1/a:1")

    assert before == file.read_bytes()
    assert f"{file}: 3 images, 0 of them new" in capsys.readouterr().out
    assert 3 == len(read_catalog(file))


def test_a_cluster_that_does_not_answer_is_one_line(monkeypatch, capsys, tmp_path):
    kubeconfig = saved(tmp_path / "kubeconfig", config(cluster={"server": "http://127.0.0.1:1"}))
    assert 1 == lamina(monkeypatch, "from-cluster", tmp_path / "c.jsonl", "--kubeconfig", kubeconfig)
    (line,) = capsys.readouterr().err.splitlines()
    assert "connection failed" in line
