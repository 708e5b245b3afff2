"""
Images made in memory, with any layers, compression, platform and index, to push or to write to a folder.

    base, app = layer({"lib/a": b"..."}), layer({"app/main": b"..."}, "zstd")
    web = push("127.0.0.1:5000", "web:1", image([base, app]))
    both = push("127.0.0.1:5000", "web:2", index([image([app]), image([app], architecture="arm64")], attestations=True))

The same content gives the same bytes and digests on every machine with the same tools. This module only writes images;
the tested code reads them.
"""

import gzip
import hashlib
import io
import json
import platform
import random
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import zstandard

from testbed import uploading

OCI: Final = "application/vnd.oci.image"
DOCKER: Final = "application/vnd.docker"
MANIFEST: Final = f"{OCI}.manifest.v1+json"
CONFIG: Final = f"{OCI}.config.v1+json"
INDEX: Final = f"{OCI}.index.v1+json"
LAYER: Final = f"{OCI}.layer.v1.tar"
DOCKER_MANIFEST: Final = f"{DOCKER}.distribution.manifest.v2+json"
DOCKER_CONFIG: Final = f"{DOCKER}.container.image.v1+json"
DOCKER_LIST: Final = f"{DOCKER}.distribution.manifest.list.v2+json"
DOCKER_LAYER: Final = f"{DOCKER}.image.rootfs.diff.tar"
STATEMENT: Final = "application/vnd.in-toto+json"

ENDINGS: Final = {"gzip": "+gzip", "zstd": "+zstd", "none": ""}
PROGRAM: Final = "idle"
"""The program that an image runs, if one of its layers has it."""
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class MadeLayer:
    """One layer, compressed and uncompressed."""

    blob: bytes
    digest: str
    size: int
    diff_id: str
    unpacked: int
    """Size of the uncompressed archive in bytes."""
    media_type: str


@dataclass(frozen=True, slots=True)
class MadeImage:
    """An image for one platform."""

    manifest: bytes
    digest: str
    media_type: str
    config: bytes
    layers: tuple[MadeLayer, ...]
    architecture: str
    variant: str
    os: str = "linux"


@dataclass(frozen=True, slots=True)
class MadeIndex:
    """Images for several platforms under one name."""

    index: bytes
    digest: str
    media_type: str
    images: tuple[MadeImage, ...]
    attestations: tuple[MadeImage, ...] = ()
    """Build attestations, one for each image; builders list them in the index beside the images."""


def machine() -> str:
    """Return this machine's architecture in Go's terms."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def noise(seed: int, size: int) -> bytes:
    """Return *size* bytes that do not compress, the same for the same seed."""
    return random.Random(seed).randbytes(size)


def layer(files: Mapping[str, bytes], compression: str = "gzip") -> MadeLayer:
    """Make a layer of executable *files* without timestamps; *compression* is gzip, zstd or none."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(files):
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(files[path]), 0o755
            tar.addfile(entry, io.BytesIO(files[path]))
    plain = archive.getvalue()
    blob = compress(plain, compression)
    return MadeLayer(blob, digest(blob), len(blob), digest(plain), len(plain), LAYER + ENDINGS[compression])


def compress(plain: bytes, compression: str) -> bytes:
    """Compress bytes with one of the methods of layers."""
    match compression:
        case "gzip":
            return gzip.compress(plain, compresslevel=6, mtime=0)
        case "zstd":
            return zstandard.ZstdCompressor().compress(plain)
        case "none":
            return plain
    raise ValueError(f"unknown compression {compression!r}; choose from {', '.join(ENDINGS)}")


def image(
    layers: Sequence[MadeLayer],
    *,
    architecture: str = "",
    variant: str = "",
    labels: Mapping[str, str] | None = None,
    docker: bool = False,
) -> MadeImage:
    """Make an image, by default for this machine and with OCI media types; *docker* selects Docker's."""
    architecture = architecture or machine()
    config = encode(
        {
            "architecture": architecture,
            **({"variant": variant} if variant else {}),
            "os": "linux",
            "config": {"Entrypoint": [f"/{PROGRAM}"], **({"Labels": dict(labels)} if labels else {})},
            "rootfs": {"type": "layers", "diff_ids": [each.diff_id for each in layers]},
        }
    )
    media_type, described = (DOCKER_MANIFEST, DOCKER_CONFIG) if docker else (MANIFEST, CONFIG)
    listed = [descriptor(docker_type(each) if docker else each.media_type, each.blob) for each in layers]
    manifest = encode(
        {"schemaVersion": 2, "mediaType": media_type, "config": descriptor(described, config), "layers": listed}
    )
    return MadeImage(manifest, digest(manifest), media_type, config, tuple(layers), architecture, variant)


def docker_type(made: MadeLayer) -> str:
    """Return Docker's media type of a layer; it has a dot where OCI has a plus."""
    return made.media_type.replace(LAYER, DOCKER_LAYER).replace("+", ".")


def index(images: Sequence[MadeImage], *, attestations: bool = False, docker: bool = False) -> MadeIndex:
    """Combine images for several platforms in an index; *attestations* adds one for each, as builders do."""
    entries = [entry(each) for each in images]
    statements = tuple(attestation(each) for each in images) if attestations else ()
    for about, statement in zip(images, statements, strict=False):
        noted = {"vnd.docker.reference.digest": about.digest, "vnd.docker.reference.type": "attestation-manifest"}
        entries.append({**entry(statement), "annotations": noted})
    media_type = DOCKER_LIST if docker else INDEX
    body = encode({"schemaVersion": 2, "mediaType": media_type, "manifests": entries})
    return MadeIndex(body, digest(body), media_type, tuple(images), statements)


def entry(made: MadeImage) -> dict[str, Any]:
    """Return an image's entry in an index."""
    platform_of = {"architecture": made.architecture, "os": made.os}
    if made.variant:
        platform_of["variant"] = made.variant
    return {**descriptor(made.media_type, made.manifest), "platform": platform_of}


def attestation(about: MadeImage) -> MadeImage:
    """Return a builder's attestation of an image: a manifest without a platform."""
    subject = {"name": "image", "digest": {"sha256": about.digest.removeprefix("sha256:")}}
    blob = encode({"_type": "https://in-toto.io/Statement/v0.1", "subject": [subject], "predicate": {}})
    statement = MadeLayer(blob, digest(blob), len(blob), digest(blob), len(blob), STATEMENT)
    config = encode(
        {
            "architecture": UNKNOWN,
            "os": UNKNOWN,
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [statement.diff_id]},
        }
    )
    listed = [descriptor(STATEMENT, blob)]
    manifest = encode(
        {"schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(CONFIG, config), "layers": listed}
    )
    return MadeImage(manifest, digest(manifest), MANIFEST, config, (statement,), UNKNOWN, "", UNKNOWN)


# ------------------------------------------------------------------------------------------------------ destinations


def push(registry: str, name: str, made: MadeImage | MadeIndex) -> str:
    """Push to a registry under *name*, a repository with a tag; return the reference for a pod."""
    repository, _, tag = name.partition(":")
    tag = tag or "latest"
    place = f"http://{registry}/v2/{repository}"
    for each in members(made):
        for blob in (*(one.blob for one in each.layers), each.config):
            uploading.blob(place, digest(blob), blob)
        uploading.manifest(place, each.digest, each.manifest, each.media_type)
    body, media_type = document(made)
    uploading.manifest(place, tag, body, media_type)
    return f"{registry}/{repository}:{tag}"


def write_layout(folder: Path, name: str, made: MadeImage | MadeIndex) -> None:
    """Write an OCI image layout that `skopeo copy oci:FOLDER:NAME` reads; several images may share a folder."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    body, media_type = document(made)
    for data in (body, *(blob for each in members(made) for blob in parts_of(each))):
        (blobs / digest(data).removeprefix("sha256:")).write_bytes(data)
    (folder / "oci-layout").write_bytes(encode({"imageLayoutVersion": "1.0.0"}))
    listed = folder / "index.json"
    known = json.loads(listed.read_bytes())["manifests"] if listed.exists() else []
    named = {**descriptor(media_type, body), "annotations": {"org.opencontainers.image.ref.name": name}}
    listed.write_bytes(encode({"schemaVersion": 2, "mediaType": INDEX, "manifests": [*known, named]}))


def members(made: MadeImage | MadeIndex) -> tuple[MadeImage, ...]:
    """Return every image of an index, or the image itself."""
    return (made,) if isinstance(made, MadeImage) else (*made.images, *made.attestations)


def parts_of(made: MadeImage) -> tuple[bytes, ...]:
    """Return all blobs of one image."""
    return (made.manifest, made.config, *(each.blob for each in made.layers))


def document(made: MadeImage | MadeIndex) -> tuple[bytes, str]:
    """Return the manifest or index as bytes, and its media type."""
    return (made.manifest if isinstance(made, MadeImage) else made.index), made.media_type


def descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    """Return the OCI descriptor of a blob."""
    return {"mediaType": media_type, "digest": digest(blob), "size": len(blob)}


def digest(data: bytes) -> str:
    """Return the sha256 digest of some bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def encode(told: Mapping[str, Any]) -> bytes:
    """Return JSON bytes; the same content gives the same bytes."""
    return json.dumps(told, separators=(",", ":")).encode()
