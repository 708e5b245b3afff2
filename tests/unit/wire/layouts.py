"""OCI image layouts as tools write them, in a folder or a tar archive, for tests."""

import json
import tarfile
from pathlib import Path
from typing import Any

from lamina.model.digest import Digest, digest_of
from lamina.wire.oci.manifest import OCI_MANIFEST

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
NAME = "io.containerd.image.name"
REF = "org.opencontainers.image.ref.name"

BASE, APP = digest_of(b"base"), digest_of(b"app")


class Layout:
    """Collects documents by digest; each method returns an entry for an index."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

    def put(self, document: dict[str, Any]) -> Digest:
        """Store a document under its digest."""
        data = json.dumps(document).encode()
        digest = digest_of(data)
        self.files[f"blobs/sha256/{digest[7:]}"] = data
        return digest

    def manifest(
        self,
        name: str = "",
        *,
        configured: dict[str, Any] | None = None,
        entry: dict[str, Any] | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Store a manifest of two layers, except for *fields*, which is *configured* so; call it *name* in the index."""
        usual = {"os": "linux", "architecture": "amd64", "rootfs": {"diff_ids": [BASE, digest_of(b"unpacked")]}}
        document = {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": {"mediaType": CONFIG, "size": 9, "digest": self.put(usual if configured is None else configured)},
            "layers": [{"digest": BASE, "size": 100}, {"digest": APP, "size": 20}],
            **fields,
        }
        return {**self._entry(OCI_MANIFEST, self.put(document), name), **(entry or {})}

    def index(self, *entries: dict[str, Any], name: str = "") -> dict[str, Any]:
        """Store an index inside the index."""
        document = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": list(entries)}
        return self._entry(OCI_INDEX, self.put(document), name)

    def _entry(self, media_type: str, digest: Digest, name: str) -> dict[str, Any]:
        entry: dict[str, Any] = {"mediaType": media_type, "digest": digest, "size": 9}
        return {**entry, "annotations": {NAME: name}} if name else entry

    def remove(self, entry: dict[str, Any]) -> None:
        """Take a document away again."""
        del self.files[f"blobs/sha256/{entry['digest'][7:]}"]

    def saved(self, path: Path, *entries: dict[str, Any]) -> Path:
        """Write everything to a folder, or to an archive if the path ends in ``.tar``, with an index of *entries*."""
        folder = path.with_suffix("")
        self.files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": list(entries)}).encode()
        for name, data in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        if path.suffix == ".tar":
            with tarfile.open(path, "w") as archive:
                archive.add(folder, arcname=".")
        return path
