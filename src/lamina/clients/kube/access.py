"""
Access to one API server: address, TLS settings and credentials.

`load_access` searches the configuration where kubectl does: the --kubeconfig flag, $KUBECONFIG, ~/.kube/config, then
the pod's own service account. Before every request, `lamina.clients.kube.transport` calls `headers`, which may run a
plugin or read a file, and then `tls`. After a 401 it calls `refused`.

Configuration mistakes raise InputError at load time. Later, the last good credential stays in use until it expires.
Without a usable credential, `headers` raises NoCredentialError, a subclass of UnreachableError.
"""

import os
import ssl
from collections.abc import Mapping
from pathlib import Path

from lamina.clients.kube import in_cluster, users
from lamina.clients.kube.credentials import CredentialSource
from lamina.clients.kube.kubeconfig import KubeContext, files_to_read, read_kubeconfig
from lamina.clients.kube.tls_contexts import TlsContexts, TlsSettings
from lamina.model.errors import InputError


class ApiAccess:
    """Address, credentials and TLS context of one API server."""

    def __init__(
        self,
        server: str,
        credentials: CredentialSource,
        tls_settings: TlsSettings,
        *,
        namespace: str = "default",
        extra_headers: Mapping[str, str] | None = None,
    ) -> None:
        """Combine the parts; *extra_headers* are headers sent with every request. Raises InputError."""
        self.server = server
        """Prefix of every URL, without a trailing slash."""
        self.namespace = namespace
        self._credentials = credentials
        self._extra_headers = dict(extra_headers or {})
        self._contexts = TlsContexts(tls_settings) if server.startswith("https:") else None

    def __repr__(self) -> str:
        return f"ApiAccess({self.server!r})"

    @property
    def troubles(self) -> int:
        """How often a credential or its file was unusable."""
        found = self._contexts.troubles if self._contexts is not None else 0
        return found + self._credentials.troubles

    async def headers(self) -> dict[str, str]:
        """Return the headers for a request made now. Raises NoCredentialError."""
        found = self._extra_headers.copy()
        if header := await self._credentials.authorization():
            found["Authorization"] = header
        return found

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context, the same object until its files change; None for plain http."""
        if self._contexts is None:
            return None
        return self._contexts.current(self._credentials.pair())

    def refused(self, used: Mapping[str, str] | None = None) -> None:
        """
        Drop the cached credential after a 401.

        With *used*, the headers of that request, a late 401 to an older request does not drop a newer credential.
        """
        self._credentials.refused(None if used is None else used.get("Authorization", ""))
        if self._contexts is not None:
            self._contexts.look_again()  # the 401 may be about the client certificate


def load_access(kubeconfig: Path | None = None, context: str = "") -> ApiAccess:
    """Find and read the configuration as kubectl does. Raises InputError."""
    if files := files_to_read(kubeconfig, os.environ, _home()):
        return _from_kubeconfig(read_kubeconfig(files).choose(context))
    if not in_cluster.is_inside(os.environ):
        message = "no cluster configured; name a file with --kubeconfig or $KUBECONFIG, or create ~/.kube/config"
        raise InputError.one("kubeconfig", message)
    if context:
        raise InputError.one("--context", "a context needs a kubeconfig, and there is none; name it with --kubeconfig")
    return ApiAccess(
        in_cluster.server(os.environ),
        in_cluster.credential_source(),
        in_cluster.tls_settings(),
        namespace=in_cluster.namespace(os.environ),
    )


def _home() -> Path | None:
    """Return the home folder; None for a container user that has a number and no passwd entry."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def _from_kubeconfig(chosen: KubeContext) -> ApiAccess:
    return ApiAccess(
        chosen.server,
        users.credential_source_of(chosen),
        users.tls_settings_of(chosen),
        namespace=chosen.namespace,
        extra_headers=users.headers_of(chosen),
    )
