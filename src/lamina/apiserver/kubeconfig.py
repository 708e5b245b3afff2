"""Kubeconfig and service account files with which any client finds the façade."""

import json
import os
from pathlib import Path
from typing import Any, Final

TOKEN: Final = "lamina-facade"  # noqa: S105 - the façade accepts any token; clients only need one to send
USER: Final = "lamina"
LARGEST: Final = 64 * 1024
"""Most bytes of a kubeconfig that a façade wrote."""


def kubeconfig(url: str, ca_file: Path | None = None) -> str:
    """Return a kubeconfig for the server at *url* as text. It is JSON, which is also YAML."""
    cluster: dict[str, Any] = {"server": url}
    if ca_file is not None:
        cluster["certificate-authority"] = str(ca_file.absolute())
    if url.startswith("http://"):
        # There is no certificate to check; @kubernetes/client-node refuses plain HTTP without this.
        cluster["insecure-skip-tls-verify"] = True
    found = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": USER, "cluster": cluster}],
        "users": [{"name": USER, "user": {"token": TOKEN}}],
        "contexts": [{"name": USER, "context": {"cluster": USER, "user": USER, "namespace": "default"}}],
        "current-context": USER,
    }
    return json.dumps(found, indent=2) + "\n"


def write_kubeconfig(path: Path, url: str, ca_file: Path | None = None) -> None:
    """Write a kubeconfig that only this user can read."""
    _write_private(path, kubeconfig(url, ca_file).encode())


def is_own_kubeconfig(path: Path) -> bool:
    """Return whether a file is a kubeconfig that a façade wrote."""
    with path.open("rb") as file:
        data = file.read(LARGEST + 1)
    try:
        found = json.loads(data)
        return len(data) <= LARGEST and [one["user"]["token"] for one in found["users"]] == [TOKEN]
    except (ValueError, KeyError, TypeError):
        return False


def write_service_account(folder: Path, ca_file: Path, namespace: str = "default") -> list[Path]:
    """
    Write the files that a program in a pod finds under ``/var/run/secrets/kubernetes.io/serviceaccount``.

    Return their paths.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = {"token": TOKEN.encode(), "namespace": namespace.encode(), "ca.crt": ca_file.read_bytes()}
    for name, content in written.items():
        _write_private(folder / name, content)
    return [folder / name for name in written]


def _write_private(path: Path, content: bytes) -> None:
    """Replace a file at once, so that no client reads half of it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
