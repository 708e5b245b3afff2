"""
One run of an exec plugin: its command, its input and its decoded credential.

The protocol is client.authentication.k8s.io v1 and v1beta1, never interactive. Plugin output is never shown, except the
last line of standard error, in which long words are replaced because they may be secrets.
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
    """The command of an exec plugin."""

    version: str
    program: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    """Variables added to our own environment."""
    hint: str = ""
    """Install hint from the kubeconfig."""
    cluster: dict[str, Plain] | None = None
    """Cluster information for the plugin; None if its entry does not request it."""
    place: str = ""
    """Location of the entry in the kubeconfig, for messages."""

    def __repr__(self) -> str:
        return f"ExecCommand({self.program!r})"


class ExecCredential(msgspec.Struct, frozen=True):
    """The credential that a plugin printed."""

    header: str = ""
    pair: ClientCertificate | None = None
    until: float | None = None
    """Expiry, in seconds since 1970; None if it does not expire."""

    def __repr__(self) -> str:
        return "ExecCredential(...)"


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
    """Run a plugin. Raises OSError, TimeoutError, ValueError or InputError; none of them contains the output."""
    return _decode(await _run(command, patience), command.version)


def printable(text: str, limit: int) -> str:
    """Return untrusted text as one line of printable ASCII, at most *limit* characters."""
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
        raise ValueError(f"it ended with exit code {ran.code}{_last_line(ran.stderr)}")
    return ran.stdout


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()
    line = printable(_SECRETIVE.sub("[...]", lines[-1]), 200) if lines else ""
    return f": {line}" if line else ""


def _decode(stdout: bytes, version: str) -> ExecCredential:
    try:
        answer = msgspec.json.decode(stdout, type=_ExecAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError("its output is not an ExecCredential in JSON") from None
    if answer.kind != "ExecCredential" or answer.version != version:
        raise ValueError(f"its output is not of version {version}; update it, or correct apiVersion")
    status = answer.status or _ExecStatus()
    if not status.token and not status.certificate:
        raise ValueError("it printed neither a token nor a certificate")
    if bool(status.certificate) != bool(status.key):
        raise ValueError("it printed a certificate without a key, or a key without a certificate")
    pair = None
    if status.certificate and status.key:
        pair = ClientCertificate(status.certificate.encode(), status.key.encode())
        build(TlsSettings(insecure=True, place="its output"), b"", pair)
    header = bearer(checked_token(status.token, "its output")) if status.token else ""
    if status.until is not None and status.until.tzinfo is None:
        raise ValueError("its expirationTimestamp has no time zone")
    return ExecCredential(header, pair, status.until.timestamp() if status.until is not None else None)
