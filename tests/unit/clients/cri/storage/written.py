"""
Image stores, written the way containers/storage writes them.

Contents do not matter here, so a layer is a name and two sizes. Whole stores by the real library are in
tests/integration/agent.
"""

import base64
import hashlib
import json
import os
import string
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"


def sha(data: bytes | str) -> str:
    return f"sha256:{hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()}"


def encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Written:
    """A layer as it was pulled."""

    name: str
    size: int = 100
    unpacked: int = 300
    compression: str = "gzip"

    @property
    def diff_id(self) -> str:
        return sha(f"unpacked {self.name}")

    @property
    def digest(self) -> str:
        return self.diff_id if self.compression == "none" else sha(f"{self.compression} {self.name}")


@dataclass
class Disk:
    """A store on disk: what is told to be in it, and `save`."""

    root: Path
    driver: str = "overlay"
    images: list[dict[str, Any]] = field(default_factory=list)
    layers: list[dict[str, Any]] = field(default_factory=list)

    @property
    def images_folder(self) -> Path:
        return self.root / f"{self.driver}-images"

    @property
    def layers_folder(self) -> Path:
        return self.root / f"{self.driver}-layers"

    def stack(self, layers: list[Written]) -> str:
        """Record layers on top of each other, unless they are there; the answer is the id of the topmost."""
        parent, known = "", {layer["id"] for layer in self.layers}
        for layer in layers:
            above = layer.diff_id.removeprefix("sha256:") if not parent else sha(f"{parent} {layer.diff_id}")[7:]
            record = {
                "id": above,
                **({"parent": parent} if parent else {}),
                "created": "2026-01-02T03:04:05.678901234Z",
                "compressed-diff-digest": layer.digest,
                "compressed-size": layer.unpacked if layer.compression == "none" else layer.size,
                "diff-digest": layer.diff_id,
                "diff-size": layer.unpacked,
                **({} if layer.compression == "none" else {"compression": 2}),
                "uidset": [0],
                "gidset": [0],
            }
            if above not in known:
                self.layers.append(record)
            parent = above
        return parent

    def pull(self, name: str, layers: list[Written], architecture: str = "amd64", *, by_index: bool = False) -> str:
        """Record an image, by way of an index if so wished; the answer is the digest of its manifest."""
        config = encode(
            {"os": "linux", "architecture": architecture, "rootfs": {"diff_ids": [one.diff_id for one in layers]}}
        )
        manifest = manifest_of(layers, config)
        documents = {sha(config): config}
        pulled = sha(manifest)
        if by_index:
            index = encode({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [{"digest": pulled}]})
            pulled = sha(index)
            documents[f"manifest-{pulled}"] = index
        documents |= {f"manifest-{sha(manifest)}": manifest, "manifest": manifest}
        self.record(name, sha(config)[7:], self.stack(layers), documents, digest=pulled)
        return sha(manifest)

    def record(self, name: str, image: str, top: str, documents: dict[str, bytes], digest: str = "") -> None:
        """Record an image with these documents, or add them to the one that has the same id."""
        known = next((one for one in self.images if one["id"] == image), None)
        if known is None:
            known = {"id": image, "digest": digest, "names": [], "names-history": [], "metadata": "{}"}
            known |= {"layer": top} if top else {}
            known |= {"big-data-names": [], "big-data-sizes": {}, "big-data-digests": {}}
            self.images.append(known)
        known["names"] = [name, *(one for one in known["names"] if one != name)]
        folder = self.images_folder / image
        folder.mkdir(parents=True, exist_ok=True)
        for key, data in documents.items():
            put(folder / file_name(key), data)
            known["big-data-names"] = sorted({*known["big-data-names"], key})
            known["big-data-sizes"][key] = len(data)
            known["big-data-digests"][key] = sha(data)

    def save(self) -> None:
        """Write the lists."""
        self.images_folder.mkdir(parents=True, exist_ok=True)
        self.layers_folder.mkdir(parents=True, exist_ok=True)
        put(self.images_folder / "images.json", encode(self.images))
        put(self.layers_folder / "layers.json", encode(self.layers))


def manifest_of(layers: list[Written], config: bytes) -> bytes:
    suffix = {"gzip": "+gzip", "zstd": "+zstd", "none": ""}
    return encode(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": {"mediaType": CONFIG_TYPE, "digest": sha(config), "size": len(config)},
            "layers": [
                {
                    "mediaType": f"application/vnd.oci.image.layer.v1.tar{suffix[one.compression]}",
                    "digest": one.digest,
                    "size": one.unpacked if one.compression == "none" else one.size,
                }
                for one in layers
            ],
        }
    )


def file_name(key: str) -> str:
    """As containers/storage spells it: other characters than these make it base64."""
    return key if set(key) <= set(string.ascii_lowercase + string.digits + ".") else f"={encoded(key)}"


def encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()


def put(path: Path, data: bytes) -> None:
    """Replace a file in one step; it counts as written a while ago, so that a reader need not wait for it to rest."""
    new = path.with_name(f".tmp-{path.name[-40:]}")
    new.write_bytes(data)
    before = time.time() - 1.0
    os.utime(new, (before, before))
    new.rename(path)
