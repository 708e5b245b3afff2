"""The configuration of registries: what can be said in it, and how mistakes are told."""

import pytest
import trustme

from lamina.clients.bounded_files import FILE_LIMIT
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings, load_registry_config
from lamina.model.errors import InputError

NO_HOST = "is not a host; remove the protocol, the path and the zone"
WITH_USER = "this is not a host; remove the user name, and never write a password into it"


def written(tmp_path, text):
    path = tmp_path / "registries.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def mistakes(tmp_path, text):
    with pytest.raises(InputError) as caught:
        load_registry_config(written(tmp_path, text))
    return [str(mistake).removeprefix(f"{tmp_path}/") for mistake in caught.value.mistakes]


def test_everything_that_can_be_said(tmp_path):
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")
    text = """
fromNodes: false
refuse: [198.51.100.0/24, "fd00:10::/64"]
registries:
- host: registry.example:5000
  private: true
  mirrors: [mirror.example, "127.0.0.1:5001"]
  realms: [login.example]
  caFile: ca.pem
- {host: docker.io, mirrors: [mirror.example]}
- {host: "127.0.0.1:5001", plainHttp: true, private: true}
"""

    expected = RegistryConfig(
        (
            RegistrySettings(
                "registry.example:5000",
                private=True,
                mirrors=("mirror.example", "127.0.0.1:5001"),
                realms=("login.example",),
                ca_file=str(tmp_path / "ca.pem"),
            ),
            RegistrySettings("docker.io", mirrors=("mirror.example",)),
            RegistrySettings("127.0.0.1:5001", plain_http=True, private=True),
        ),
        from_nodes=False,
        refuse=("198.51.100.0/24", "fd00:10::/64"),
    )
    assert expected == load_registry_config(written(tmp_path, text))


def test_nothing_said_allows_what_nodes_pull_from_and_no_more():
    assert RegistryConfig() == RegistryConfig((), from_nodes=True, refuse=())


def test_every_mistake_in_a_field_is_told_at_once(tmp_path):
    text = """
refuse: [198.51.100.1/24, nowhere]
registries:
- {host: https://registry.example/v2}
- {host: a.example, plain_http: true}
- {host: b.example, realms: ["user:pw@c.example"], mirrors: [d.example/path]}
- {private: true}
"""

    assert [
        "registries.yaml:2: refuse[0]: 198.51.100.1/24 has host bits set",
        "registries.yaml:2: refuse[1]: 'nowhere' does not appear to be an IPv4 or IPv6 network",
        f"registries.yaml:4: registries[0].host: 'https://registry.example/v2' {NO_HOST}",
        "registries.yaml:5: registries[1].plain_http: unknown field 'plain_http'; did you mean 'plainHttp'?",
        f"registries.yaml:6: registries[2].realms[0]: {WITH_USER}",
        f"registries.yaml:6: registries[2].mirrors[0]: 'd.example/path' {NO_HOST}",
        "registries.yaml:7: registries[3].host: required field is missing",
    ] == mistakes(tmp_path, text)


def test_entries_that_do_not_fit_together_are_told_at_once(tmp_path):
    (tmp_path / "empty.pem").write_text("nothing")
    text = """
registries:
- {host: a.example, caFile: missing.pem}
- {host: A.example, plainHttp: true, caFile: empty.pem}
- {host: docker.io, plainHttp: true}
"""

    assert [
        f"registries.yaml:3: registries[0].caFile: {tmp_path}/missing.pem cannot be read: no such file or directory",
        "registries.yaml:4: registries[1].host: a.example already has an entry, registries[0]: merge them",
        "registries.yaml:4: registries[1].caFile: a CA file has no use without TLS; remove this, or plainHttp",
        f"registries.yaml:4: registries[1].caFile: {tmp_path}/empty.pem contains no certificates; name a file in PEM",
        "registries.yaml:5: registries[2].plainHttp: Docker Hub requires TLS; remove this",
    ] == mistakes(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "nothing in it", id="empty"),
        pytest.param("registries: 5", "expected a list", id="not a list"),
        pytest.param("&a [*a]", "stands inside what it names", id="a loop"),
        pytest.param("#" * (FILE_LIMIT + 1), "too large", id="too large"),
    ],
)
def test_what_is_no_configuration_is_told_in_a_line(tmp_path, text, told):
    assert told in mistakes(tmp_path, text)[0]


def test_a_file_that_cannot_be_read_is_told_in_a_line(tmp_path):
    with pytest.raises(InputError, match="cannot be read: no such file or directory"):
        load_registry_config(tmp_path / "missing.yaml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        load_registry_config(tmp_path / "binary")
