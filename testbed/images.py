"""
Images of the testbed's own making, pushed to its registry: as many layers as a test wants, and a program that idles.

The same content gives the same bytes and digests on every machine with the same tools.
"""

import gzip
import hashlib
import io
import json
import platform
import tarfile
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from testbed.errors import TestbedError

CONFIG: Final = "application/vnd.oci.image.config.v1+json"
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
PROGRAM: Final = "idle"
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
TIMEOUT: Final = 60


@dataclass(frozen=True, slots=True)
class Pushed:
    """An image as it lies in the registry."""

    reference: str
    """By tag, as a pod names it."""
    digest: str
    """Of its manifest."""
    manifest: dict[str, Any]


def push(registry: str, name: str, layers: Sequence[Mapping[str, bytes]]) -> Pushed:
    """Push an image whose layers hold these files; *name* is a repository with a tag, and one layer has the program."""
    repository, _, tag = name.partition(":")
    blobs = [pack(files) for files in layers]
    config = encode(
        {
            "architecture": architecture(),
            "os": "linux",
            "config": {"Entrypoint": [f"/{PROGRAM}"]},
            "rootfs": {"type": "layers", "diff_ids": [digest(gzip.decompress(blob)) for blob in blobs]},
        }
    )
    manifest: dict[str, Any] = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(CONFIG, config),
        "layers": [descriptor(LAYER, blob) for blob in blobs],
    }
    place = f"http://{registry}/v2/{repository}"
    for blob in (*blobs, config):
        upload(place, blob)
    body = encode(manifest)
    exchange("PUT", f"{place}/manifests/{tag or 'latest'}", body, MANIFEST)
    return Pushed(f"{registry}/{repository}:{tag or 'latest'}", digest(body), manifest)


def pack(files: Mapping[str, bytes]) -> bytes:
    """A layer: a compressed archive of *files*, all of them executable, without a trace of when it was made."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(files):
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(files[path]), 0o755
            tar.addfile(entry, io.BytesIO(files[path]))
    return gzip.compress(archive.getvalue(), compresslevel=6, mtime=0)


def upload(place: str, blob: bytes) -> None:
    """Push one blob in one piece."""
    answer = exchange("POST", f"{place}/blobs/uploads/")
    location = answer["Location"]
    joint = "&" if "?" in location else "?"
    exchange("PUT", f"{location}{joint}digest={digest(blob)}", blob, "application/octet-stream")


def exchange(method: str, url: str, body: bytes = b"", content_type: str = "") -> Mapping[str, str]:
    """Send a request to the registry; the answer is the headers."""
    headers = {"Content-Type": content_type} if content_type else {}
    request = urllib.request.Request(url, data=body, method=method, headers=headers)  # noqa: S310 - http, see `push`
    # A proxy of the person has no business with the loopback interface.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT) as answer:
            return dict(answer.headers.items())
    except urllib.error.HTTPError as error:
        with error:
            told = error.read(500).decode(errors="replace")
        raise TestbedError(f"the registry refused {method} {url}: {error.code} {told}") from error


def descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    """How a manifest names a blob."""
    return {"mediaType": media_type, "digest": digest(blob), "size": len(blob)}


def digest(data: bytes) -> str:
    """The name of some bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def encode(document: Mapping[str, Any]) -> bytes:
    """JSON, the same for the same content."""
    return json.dumps(document, separators=(",", ":")).encode()


def architecture() -> str:
    """What this machine is, in Go's words."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())
