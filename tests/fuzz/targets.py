"""What is fuzzed: a parser, its seeds, and the errors that it may end with."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from lamina.clients.oci import registry_config
from lamina.clients.oci.addresses import rejection_reason_of
from lamina.clients.oci.challenge import LONGEST, MOST, parse_challenges
from lamina.clients.oci.hosts import parse_host
from lamina.clients.oci.image_selection import MissingDocument, select_images
from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.lookup_results import RegistryError, one_line, without_secrets
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings
from lamina.clients.oci.registry_documents import CachedDocument, CachedIndex, ManifestWithoutConfig, describe, read
from lamina.clients.oci.registry_endpoints import CheckedUrl, EndpointPolicy
from lamina.model.digest import Digest, DigestError, digest_of, parse_digest
from lamina.model.errors import InputError
from lamina.model.image import Platform
from lamina.model.reference import ReferenceFormatError, parse_reference
from lamina.wire.errors import WireError
from lamina.wire.kube_protobuf.protobuf_reader import ProtobufError
from tests.fuzz import batsim_targets, corpus, extender_targets, protobuf_targets
from tests.unit.clients.oci.registry_stub import INDEX, MANIFEST, a_config, a_manifest


class Subject(msgspec.Struct, frozen=True):
    """One thing to fuzz."""

    name: str
    run: Callable[[bytes], None]
    seeds: Sequence[bytes]
    errors: tuple[type[Exception], ...]


def _encoded(texts: Sequence[str]) -> list[bytes]:
    return [text.encode("utf-8", "surrogatepass") for text in texts]


def _text(data: bytes) -> str:
    return (
        data.decode("utf-8", "surrogatepass" if b"\xed" in data else "replace")
        if _is_text(data)
        else data.decode("latin-1")
    )


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def manifest(data: bytes) -> None:
    for kind in (MANIFEST, ""):
        found = read(data, digest_of(data), kind)
        if isinstance(found, ManifestWithoutConfig):
            assert 0 < len(found.image.layers) <= 256
            assert all(0 <= layer.size <= 2**40 for layer in found.image.layers)


def index(data: bytes) -> None:
    root = digest_of(data)
    found = read(data, root, INDEX)
    if isinstance(found, CachedIndex):
        assert len(found.manifests) <= 256
        shelf: dict[Digest, CachedDocument] = {root: found}
        for platforms in ([], [Platform(), Platform(architecture="arm64")]):
            assert isinstance(select_images(root, platforms, shelf.get), MissingDocument | tuple)


PARENT: Final = read(a_manifest(a_config(3), 3), digest_of(a_manifest(a_config(3), 3)), MANIFEST)


def config(data: bytes) -> None:
    assert isinstance(PARENT, ManifestWithoutConfig)
    described = describe(ManifestWithoutConfig(PARENT.image, digest_of(data)), data)
    assert len(described.image.layers) == 3


def reference(data: bytes) -> None:
    parsed = parse_reference(_text(data))
    assert parsed == parse_reference(str(parsed))


def digest(data: bytes) -> None:
    text = parse_digest(_text(data))
    assert text.isascii()
    assert len(text) in (71, 135)


def host(data: bytes) -> None:
    parsed = parse_host(_text(data))
    assert parsed == parse_host(str(parsed))


def challenge(data: bytes) -> None:
    found = parse_challenges([_text(data), "Basic"])
    assert len(found) <= MOST
    assert all(len(value) <= LONGEST for one in found for value in one.parameters.values())


def docker_config(data: bytes) -> None:
    ring = Keyring.from_secrets([data])
    for name in ("docker.io", "registry.example", "[::1]:5000"):
        ring.for_registry(name, "team/app")
    _PATH.write_bytes(data)
    Keyring.from_file(_PATH)


def rules_file(data: bytes) -> None:
    _PATH.write_bytes(data)
    loaded = registry_config.load_registry_config(_PATH)
    EndpointPolicy(loaded)


_FOLDER: Final = tempfile.TemporaryDirectory(prefix="fuzz-")
_PATH: Final = Path(_FOLDER.name) / "input"
_PLACES: Final = EndpointPolicy(RegistryConfig((RegistrySettings("registry.example", realms=("login.example",)),)))
_HERE: Final = _PLACES.endpoints_for("registry.example")[0]


def url(data: bytes) -> None:
    text = _text(data)
    here = CheckedUrl(_HERE, f"{_HERE.base}/v2/")
    for call in (lambda: _PLACES.realm(_HERE, text), lambda: _PLACES.redirect(_HERE, here, text)):
        try:
            target = call()
        except RegistryError as error:
            target, detail = here, error.detail
        else:
            detail = ""
        assert detail.isprintable()
        assert target.url.isascii()
        assert target.url.startswith("https://")
        assert not target.endpoint.private


def address(data: bytes) -> None:
    text = _text(data)
    assert isinstance(rejection_reason_of(text), str)
    assert one_line(text).isprintable()
    assert without_secrets(text, ["secret"]).isprintable()


ADDRESSES: Final = (
    "127.0.0.1",
    "::1",
    "::ffff:10.0.0.1",
    "fe80::1%eth0",
    "8.8.8.8",
    "64:ff9b::1",
    "1.2.3",
    "",
    "::",
    "ff02::1",
)
DIGESTS: Final = (
    "sha256:" + "a" * 64,
    "sha512:" + "0" * 128,
    "sha256:",
    ":",
    "",
    "sha256",
    "md5:x",
    "sha256:" + "A" * 64,
    "x" * 9_000,
)
HOSTS: Final = (
    "registry.example:5000",
    "docker.io",
    "[::1]:5000",
    "127.0.0.1",
    "a" * 64,
    "a..b",
    "127.1",
    "0x1",
    "a:0",
    "é",
)

TARGETS: Final = (
    Subject("manifest", manifest, corpus.MANIFESTS, (WireError,)),
    Subject("index", index, corpus.INDEXES, (WireError,)),
    Subject("config", config, corpus.CONFIGS, (WireError,)),
    Subject("reference", reference, _encoded(corpus.REFERENCES), (ReferenceFormatError,)),
    Subject("digest", digest, _encoded(DIGESTS), (DigestError,)),
    Subject("host", host, _encoded(HOSTS), (ValueError,)),
    Subject("WWW-Authenticate", challenge, _encoded(corpus.CHALLENGES), ()),
    Subject("docker config", docker_config, corpus.DOCKER_CONFIGS, (InputError,)),
    Subject("rules file", rules_file, corpus.RULES, (InputError,)),
    Subject("realm or redirect", url, _encoded(corpus.URLS), ()),
    Subject("address", address, _encoded(ADDRESSES), ()),
    Subject("extender body", extender_targets.asked_body, extender_targets.ASKED, (WireError,)),
    Subject("extender preemption", extender_targets.preempting_body, extender_targets.PREEMPTING, (WireError,)),
    Subject("node annotations", extender_targets.node_annotations, extender_targets.ANNOTATIONS, ()),
    Subject("Batsim message", batsim_targets.batsim_message, batsim_targets.MESSAGES, ()),
    Subject("protobuf body", protobuf_targets.protobuf_body, protobuf_targets.BODIES, (ProtobufError,)),
)
