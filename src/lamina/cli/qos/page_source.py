"""Where `lamina qos` reads the page: from an address, or from a pod through the API server's proxy."""

import asyncio
import re
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlencode, urlsplit

from lamina.clients.kube.access import ApiAccess, load_access
from lamina.clients.kube.errors import ApiError, one_line
from lamina.clients.kube.transport import KubeClient
from lamina.clients.service_endpoint import EndpointError, read_endpoint
from lamina.model.errors import InputError
from lamina.model.plain import shown
from lamina.wire.kube.meta import decode_names

LARGEST: Final = 16 * 1024 * 1024
"""Limit of a page in bytes; the scheduler's own limit of rows keeps it below a tenth."""
NAMESPACE: Final = "lamina-system"
SELECTOR: Final = "app.kubernetes.io/name=lamina,app.kubernetes.io/component=scheduler"
NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
TIMEOUT: Final = 10.0


class PageSource(Protocol):
    """A place where the page is read."""

    def read(self, path: str) -> bytes:
        """Return one of the page's forms. Raises LaminaError."""


class UrlPage:
    """The page at an address."""

    def __init__(self, url: str) -> None:
        """Check the address."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise InputError.one("--url", f"{shown(url)} is not an address; write for example http://127.0.0.1:10000")
        self._url = url.rstrip("/")

    def read(self, path: str) -> bytes:
        """Return one of the page's forms."""
        hint = "is the scheduler running with a profile that enables QosAware? (lamina scheduler --profile qos)"
        try:
            status, body = asyncio.run(read_endpoint(f"{self._url}{path}", LARGEST))
        except EndpointError as error:
            raise InputError.one("--url", f"{self._url} cannot be read: {error}; {hint}") from error
        if status != 200:
            said = one_line(body[:200].decode(errors="replace"))
            raise InputError.one("--url", f"{self._url} answered {status}: {said}; {hint}")
        return body


class PodPage:
    """The page of a pod, through the API server's proxy."""

    def __init__(self, kubeconfig: Path | None, context: str, pod: str, port: int) -> None:
        """Use the credentials of a kubeconfig; without a pod, find one of Lamina's Deployment."""
        self._access: ApiAccess = load_access(kubeconfig, context)
        namespace, _, name = pod.rpartition("/")
        self._namespace, self._pod, self._port = namespace or NAMESPACE, name, port
        if pod and not all(map(NAME.fullmatch, (self._namespace, self._pod))):
            raise InputError.one("--pod", f"{shown(pod)} is not the name of a pod; write NAME or NAMESPACE/NAME")

    def read(self, path: str) -> bytes:
        """Return one of the page's forms."""
        return asyncio.run(self._read(path))

    async def _read(self, path: str) -> bytes:
        client = KubeClient(self._access, connections=1)
        pods, pod = f"/api/v1/namespaces/{self._namespace}/pods", self._pod
        try:
            # Searched at every read: a restarted scheduler is another pod.
            pod = pod or await self._find(client, pods)
            target = f"{pods}/{pod}:{self._port}/proxy{path}"
            return await client.request("GET", target, timeout=TIMEOUT, limit=LARGEST)
        except ApiError as error:
            raise InputError.one("--pod", f"{self._namespace}/{pod or '?'}: {error}{self._hint(error)}") from error
        finally:
            await client.close()

    async def _find(self, client: KubeClient, pods: str) -> str:
        query = {"labelSelector": SELECTOR, "fieldSelector": "status.phase=Running", "limit": "10"}
        names = decode_names(await client.request("GET", pods, query=query, timeout=TIMEOUT, limit=LARGEST))
        if not names:
            where = f"{self._namespace} with {urlencode({'labels': SELECTOR}, safe='=,/')}"
            raise InputError.one("--pod", f"there is no running pod in {where}; name one with --pod NAMESPACE/NAME")
        return names[0]

    def _hint(self, error: ApiError) -> str:
        if error.status == 403:
            return "; the user needs `get` on pods/proxy (deploy/rbac/optional/qos-viewer.yaml)"
        if error.status == 404:
            return "; name the scheduler's pod with --pod NAMESPACE/NAME"
        if error.status >= 500:
            return f"; the pod must serve the page: lamina scheduler --qos-listen 0.0.0.0:{self._port}"
        return ""
