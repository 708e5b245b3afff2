"""
One run of an exec plugin: what is started, what it is told, and what it may answer.

The protocol is client.authentication.k8s.io v1 and v1beta1, never interactive. What a plugin prints is never shown,
but for the last line of its standard error, with everything taken out that is long enough to be a secret.
"""

import os
import re
from datetime import datetime
from typing import Final

import msgspec

from lamina.clients.bounded_files import FILE_LIMIT
from lamina.clients.kube.credentials import ClientCertificate, bearer, checked_token
from lamina.clients.kube.tls_contexts import TlsSettings, build
from lamina.clients.programs import run
from lamina.model.plain import Plain

VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
INFO: Final = "KUBERNETES_EXEC_INFO"
_SECRETIVE: Final = re.compile(r"[^\s:/]{16,}")
_UNSHOWN: Final = re.compile(r"[^\x20-\x7e]+")


class ExecCommand(msgspec.Struct, frozen=True):
    """What to run."""

    version: str
    program: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    """On top of our own."""
    hint: str = ""
    """How to install it."""
    cluster: dict[str, Plain] | None = None
    """What it is told about the cluster, if it wants to know."""
    place: str = ""
    """Where this stands, for messages."""

    def __repr__(self) -> str:
        return f"Command({self.program!r})"


class ExecCredential(msgspec.Struct, frozen=True):
    """What a plugin gave."""

    header: str = ""
    pair: ClientCertificate | None = None
    until: float | None = None
    """When it ends, in seconds since 1970."""

    def __repr__(self) -> str:
        return "Given(...)"


class _ExecStatus(msgspec.Struct):
    token: str | None = None
    certificate: str | None = msgspec.field(name="clientCertificateData", default=None)
    key: str | None = msgspec.field(name="clientKeyData", default=None)
    until: datetime | None = msgspec.field(name="expirationTimestamp", default=None)


class _ExecAnswer(msgspec.Struct):
    version: str = msgspec.field(name="apiVersion", default="")
    kind: str = ""
    status: _ExecStatus | None = None


async def run_exec_command(command: ExecCommand, patience: float) -> ExecCredential:
    """Run a plugin. Raises OSError, TimeoutError, ValueError or InputError, none of which shows what it printed."""
    return _judge(await _run(command, patience), command.version)


def printable(text: str, limit: int) -> str:
    """Make a stranger's words fit for a line of ours."""
    return " ".join(_UNSHOWN.sub(" ", text).split())[:limit]


async def _run(command: ExecCommand, patience: float) -> bytes:
    spec: dict[str, Plain] = {"interactive": False}
    if command.cluster is not None:
        spec["cluster"] = command.cluster
    info = {"apiVersion": command.version, "kind": "ExecCredential", "spec": spec}
    ran = await run(
        (command.program, *command.arguments),
        patience=patience,
        limit=FILE_LIMIT,
        environment={**os.environ, **command.environment, INFO: msgspec.json.encode(info).decode()},
    )
    if ran.code != 0:
        raise ValueError(f"it ended with exit code {ran.code}{_last_line(ran.told)}")
    return ran.printed


def _last_line(told: bytes) -> str:
    lines = told.decode(errors="replace").strip().splitlines()
    line = printable(_SECRETIVE.sub("[...]", lines[-1]), 200) if lines else ""
    return f": {line}" if line else ""


def _judge(printed: bytes, version: str) -> ExecCredential:
    try:
        answer = msgspec.json.decode(printed, type=_ExecAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError("what it printed is not an ExecCredential in JSON") from None
    if answer.kind != "ExecCredential" or answer.version != version:
        raise ValueError(f"it does not speak {version}; update it, or correct apiVersion")
    status = answer.status or _ExecStatus()
    if not status.token and not status.certificate:
        raise ValueError("it printed neither a token nor a certificate")
    if bool(status.certificate) != bool(status.key):
        raise ValueError("it printed a certificate without a key, or a key without a certificate")
    pair = None
    if status.certificate and status.key:
        pair = ClientCertificate(status.certificate.encode(), status.key.encode())
        build(TlsSettings(insecure=True, place="what it printed"), b"", pair)
    header = bearer(checked_token(status.token, "what it printed")) if status.token else ""
    if status.until is not None and status.until.tzinfo is None:
        raise ValueError("what it printed ends at a time without a time zone")
    return ExecCredential(header, pair, status.until.timestamp() if status.until is not None else None)
