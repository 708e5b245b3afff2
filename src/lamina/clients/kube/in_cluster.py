"""API access from inside a pod: address from the environment, token and CA from files that the kubelet rotates."""

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lamina.clients.bounded_files import read_file
from lamina.clients.kube.credentials import TokenFile
from lamina.clients.kube.tls_contexts import TlsSettings
from lamina.model.errors import InputError

FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST: Final = "KUBERNETES_SERVICE_HOST"
PORT: Final = "KUBERNETES_SERVICE_PORT"


def is_inside(environ: Mapping[str, str]) -> bool:
    """Return whether the environment is that of a pod."""
    return bool(environ.get(HOST)) and bool(environ.get(PORT))


def server(environ: Mapping[str, str]) -> str:
    """Return the URL of the API server. Raises InputError."""
    host, port = environ[HOST], environ[PORT]
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise InputError.one(f"${PORT}", "expected a port number from 1 to 65535")
    try:
        host = f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        if not host.isascii() or not all(sign.isalnum() or sign in ".-" for sign in host):
            raise InputError.one(f"${HOST}", "expected an IP address or a host name") from None
    return f"https://{host}:{port}"


def namespace(environ: Mapping[str, str], folder: Path = FOLDER) -> str:
    """Return the namespace of this pod, as kubectl determines it; "default" if unknown."""
    if named := environ.get("POD_NAMESPACE"):
        return named
    try:
        return read_file(folder / "namespace").decode().strip() or "default"
    except (InputError, ValueError):
        return "default"


def credential_source(folder: Path = FOLDER) -> TokenFile:
    """Return the service account token as a credential source. Raises InputError if there is none."""
    try:
        return TokenFile(folder / "token")
    except InputError as error:
        hint = "does the pod have a service account, with automountServiceAccountToken?"
        raise InputError.one("in-cluster access", f"{error}; {hint}") from None


def tls_settings(folder: Path = FOLDER) -> TlsSettings:
    """Return TLS settings that trust the cluster's CA."""
    return TlsSettings(authority=folder / "ca.crt", place="in-cluster access")
