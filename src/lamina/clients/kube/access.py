"""
How to reach one API server: its address, whom to trust, and what to show with each request.

`load_access` finds the configuration where kubectl would: the --kubeconfig flag, $KUBECONFIG, ~/.kube/config, and the
pod's own service account. `lamina.clients.kube.transport` asks an Access before every request: first `headers`, which
may run a plugin or read a file, then `tls`, then tells it of a 401 with `refused`.

Mistakes are found when it is loaded, as InputError. Later, what was good stays in use while it can; when there is
nothing left to show, `headers` raises NoCredentialError, which is an Unreachable and handled like one.
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
    """One API server and who we are to it."""

    def __init__(
        self,
        server: str,
        identity: CredentialSource,
        trust: TlsSettings,
        *,
        namespace: str = "default",
        others: Mapping[str, str] | None = None,
    ) -> None:
        """Put the parts together; *others* are headers that go with every request. Raises InputError."""
        self.server = server
        """The beginning of every address, without a slash at its end."""
        self.namespace = namespace
        self._identity = identity
        self._others = dict(others or {})
        self._contexts = TlsContexts(trust) if server.startswith("https:") else None

    def __repr__(self) -> str:
        return f"Access({self.server!r})"

    @property
    def troubles(self) -> int:
        """How often a credential or its file could not be used."""
        found = self._contexts.troubles if self._contexts is not None else 0
        return found + self._identity.troubles

    async def headers(self) -> dict[str, str]:
        """Give the headers of a request made now. Raises NoCredentialError."""
        found = self._others.copy()
        if header := await self._identity.authorization():
            found["Authorization"] = header
        return found

    def tls(self) -> ssl.SSLContext | None:
        """Give the TLS side, the same object for as long as nothing changed; None without TLS."""
        if self._contexts is None:
            return None
        return self._contexts.current(self._identity.pair())

    def refused(self, used: Mapping[str, str] | None = None) -> None:
        """
        Hear of a 401: what is cached must not be used again.

        With the headers that were *used*, an answer to an older request does not count against a newer credential.
        """
        self._identity.refused(None if used is None else used.get("Authorization", ""))
        if self._contexts is not None:
            self._contexts.look_again()  # it may have been our certificate


def load_access(kubeconfig: Path | None = None, context: str = "") -> ApiAccess:
    """Find and read the configuration as kubectl does. Raises InputError with one clear line."""
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
    """Find the home folder; users that a container was given by number only have none."""
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
        others=users.headers_of(chosen),
    )
