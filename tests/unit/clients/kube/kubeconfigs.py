"""Kubeconfigs, certificates and clocks for tests of the access to a cluster."""

import base64
import functools
import json
from pathlib import Path
from typing import Any

import trustme

CANARY = "canary-7f3a9c51d2e84b60-secret"
"""Stands where secrets stand, and must never come out where people read."""


def config(
    *, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, name: str = "c", **context: Any
) -> dict[str, Any]:
    """A kubeconfig with one context, whose parts all have one name."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **context}}],
        "clusters": [{"name": name, "cluster": {"server": "https://127.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
    }


def saved(path: Path, document: dict[str, Any]) -> Path:
    """Write it as JSON, which is YAML too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@functools.cache
def authority(number: int = 0) -> trustme.CA:
    """One of several certificate authorities, made once."""
    return trustme.CA(organization_name=f"authority {number}")


def authority_pem(number: int = 0) -> bytes:
    return authority(number).cert_pem.bytes()


@functools.cache
def client_certificate(number: int = 0) -> tuple[bytes, bytes]:
    """A certificate and its key."""
    issued = authority(number).issue_cert(f"client-{number}.example")
    return issued.cert_chain_pems[0].bytes(), issued.private_key_pem.bytes()


class Clock:
    """A clock that stands still until it is set on."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
