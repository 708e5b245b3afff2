"""
Pull secrets of pods, in namespaces that permit their use.

A namespace permits it with a label or annotation ``lamina.dev/pull-secrets: use`` and a RoleBinding to the role
`lamina-pull-secrets`. Both are needed; Lamina has no other permission to read secrets. It reads only the secrets that a
pod names in ``imagePullSecrets``. (If the pod names none, the API server has filled in those of its service account.)
Each secret is read at most once a minute, however many images wait for it. Its credentials are sent only to the
registry they are for.
"""

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, Protocol
from urllib.parse import quote

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.oci.keyring import Keyring
from lamina.model.pod import Pod
from lamina.wire.errors import WireError
from lamina.wire.kube.secret import Secret, decode_secret

OPT_IN: Final = "lamina.dev/pull-secrets"
USE: Final = "use"
KEPT_FOR: Final = 60.0
MOST_KEPT: Final = 1000
MOST_OF_A_POD: Final = 8
NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
"""The API server does not validate these names in pods, and the name becomes part of a URL path."""
LARGEST: Final = 128 * 1024
"""
Most bytes of registry credentials in a secret. Kubernetes permits eight times as many, which would block the event
loop.
"""
ANSWER_LIMIT: Final = 2 * 1024 * 1024
"""Bytes of the reply: base64, and perhaps twice, because kubectl apply keeps a copy in an annotation."""
REQUEST_TIMEOUT: Final = 5.0
AT_ONCE: Final = 4
"""Secrets that are read at a time: the lease is renewed over the same few connections."""
KINDS: Final = {"kubernetes.io/dockerconfigjson": ".dockerconfigjson", "kubernetes.io/dockercfg": ".dockercfg"}
"""Secret types that are read, and the data key of each."""

log = logging.getLogger(__name__)


class SecretsClient(Protocol):
    """The method used of the Kubernetes client."""

    async def request(self, method: str, path: str, *, timeout: float = 30.0, limit: int = 0) -> bytes:
        """Send one request; return the body or raise."""


class PullSecrets:
    """Reads the pull secrets of namespaces that permit it."""

    def __init__(self, client: SecretsClient) -> None:
        """Read secrets through *client*."""
        self._client = client
        self._open: set[str] = set()
        self._kept: OrderedDict[tuple[str, str], tuple[float, Keyring | None]] = OrderedDict()
        """Keyring of each secret and when it expires, oldest first; None: the secret has no usable credentials."""
        self._reading: dict[tuple[str, str], asyncio.Task[Keyring | None]] = {}
        self._free = asyncio.Semaphore(AT_ONCE)

    def namespace(self, name: str, annotations: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Record a namespace that appeared or changed; a deleted one is passed without annotations and labels."""
        if USE in (annotations.get(OPT_IN), labels.get(OPT_IN)):
            self._open.add(name)
        elif name in self._open:
            self._open.discard(name)
            for key in [one for one in self._kept if one[0] == name]:
                del self._kept[key]

    def of(self, pod: Pod) -> tuple[str, ...]:
        """Return the names of secrets to read for a pod; invalid names are left out."""
        if not pod.pull_secrets or pod.namespace not in self._open:
            return ()
        return tuple([name for name in pod.pull_secrets[:MOST_OF_A_POD] if NAME.fullmatch(name)])

    async def keyring(self, namespace: str, names: tuple[str, ...]) -> Keyring | None:
        """Return the credentials of these secrets; None if there are none."""
        said = [await self._read(namespace, name) for name in names if namespace in self._open]
        usable = [one for one in said if one is not None]
        if not usable or namespace not in self._open:
            return None
        return usable[0] if len(usable) == 1 else Keyring.joined(usable)

    async def _read(self, namespace: str, name: str) -> Keyring | None:
        key, now = (namespace, name), asyncio.get_running_loop().time()
        while self._kept and next(iter(self._kept.values()))[0] <= now:
            self._kept.popitem(last=False)
        if key in self._kept:
            return self._kept[key][1]
        if (task := self._reading.get(key)) is None:
            task = self._reading[key] = asyncio.create_task(self._fetch(key), name="pull secret")
            task.add_done_callback(lambda _: self._reading.pop(key, None))
        # Several callers may wait for this task: cancelling one of them must not cancel it.
        return await asyncio.shield(task)

    async def _fetch(self, key: tuple[str, str]) -> Keyring | None:
        namespace, name = key
        async with self._free:
            said = await self._ask(namespace, name)
        ring = None if said is None else Keyring.from_secrets([said])
        if ring is not None and ring.unreadable:
            self._complain(namespace, "pull secret not fully readable: not a Docker configuration")
        if namespace in self._open:
            self._kept[key] = (asyncio.get_running_loop().time() + KEPT_FOR, ring)
            self._kept.move_to_end(key)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return ring

    async def close(self) -> None:
        """Cancel all reads in flight."""
        tasks = list(self._reading.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, namespace: str, name: str) -> bytes | None:
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/secrets/{quote(name, safe='')}"
        try:
            body = await self._client.request("GET", path, timeout=REQUEST_TIMEOUT, limit=ANSWER_LIMIT)
            secret = decode_secret(body)
        except ApiError as error:
            self._complain(namespace, f"pull secret not readable: {error.status} {error.reason}")
        except UnreachableError as error:
            self._complain(namespace, f"pull secret not readable: {error.problem}")
        except WireError:
            self._complain(namespace, "pull secret not readable: the reply is not a Secret")
        else:
            return _usable(secret)
        return None

    def _complain(self, namespace: str, problem: str) -> None:
        log.warning(problem, extra={"fields": {"namespace": namespace}})


def _usable(secret: Secret) -> bytes | None:
    """Return the registry credentials of a secret; None if its type is another one, or it is too large."""
    key = KINDS.get(secret.type)
    said = (secret.data or {}).get(key, b"") if key is not None else b""
    return said if 0 < len(said) <= LARGEST else None
