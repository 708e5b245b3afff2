"""Whatever stands in a kubeconfig or is printed by a plugin, the answer is an access or a clear line."""

import copy
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.clients.kube.access import ApiAccess, load_access
from lamina.clients.kube.exec_command import VERSIONS, ExecCredential, _decode
from lamina.model.errors import InputError
from tests.unit.clients.kube.kubeconfigs import CANARY, authority_pem, client_certificate, config, encoded

CERTIFICATE, KEY = client_certificate()
WHOLE = config(
    user={
        "client-certificate-data": encoded(CERTIFICATE),
        "client-key-data": encoded(KEY),
        "token": CANARY,
        "as": "ben",
        "as-groups": ["dev"],
        "as-user-extra": {"a": ["b"]},
        "exec": {"apiVersion": VERSIONS[0], "command": "./x", "args": ["y"], "env": [{"name": "a", "value": "b"}]},
    },
    cluster={
        "certificate-authority-data": encoded(authority_pem()),
        "tls-server-name": "x",
        "extensions": [{"name": "n"}],
    },
    namespace="ns",
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value, path=()):
    """Every place in a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def changed(path, new):
    """The whole kubeconfig with something else in one place."""
    if not path:
        return new
    document = copy.deepcopy(WHOLE)
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = new
    return document


def tried(text: bytes) -> str:
    """What is said about a kubeconfig; nothing if it can be used."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config"
        path.write_bytes(text)
        try:
            assert isinstance(load_access(path), ApiAccess)
        except InputError as error:
            return str(error)
    return ""


def test_the_whole_kubeconfig_can_be_used():
    assert "" == tried(json.dumps(WHOLE).encode())


@given(st.sampled_from(list(places(WHOLE))), anything)
def test_anything_in_any_place_is_used_or_told_in_one_line_without_a_secret(path, new):
    said = tried(json.dumps(changed(path, new)).encode())

    assert "\n" not in said
    assert CANARY not in said


@settings(max_examples=50)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_refused_in_clear_words(data):
    assert tried(data)


@given(st.binary(max_size=100) | anything.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_plugin_prints_is_judged(printed):
    with pytest.raises((ValueError, InputError)):
        _decode(printed, VERSIONS[0])


@given(
    st.dictionaries(
        st.sampled_from(["token", "clientCertificateData", "clientKeyData", "expirationTimestamp", "other"]), anything
    )
)
def test_whatever_status_a_plugin_prints_is_judged(status):
    printed = json.dumps({"apiVersion": VERSIONS[0], "kind": "ExecCredential", "status": status}).encode()
    try:
        assert isinstance(_decode(printed, VERSIONS[0]), ExecCredential)
    except (ValueError, InputError):
        return
