"""
Pull secrets of pods, where their namespace lets us use them.

A namespace lets us by a label or annotation ``lamina.dev/pull-secrets: use``, and by a RoleBinding to the role
`lamina-pull-secrets`: both are needed, and there is no right to secrets beyond. Read are the secrets a pod names in
``imagePullSecrets`` and no others. (Where the pod names none, the API server has written those of its service account
there.) Each is read and looked through once a minute, however many images wait for it. What it says is told to nobody but
the registry it is for.
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
"""The API server does not look at what pods write here, and the name becomes part of a path."""
LARGEST: Final = 128 * 1024
"""Bytes that a secret says about registries. Kubernetes allows eight times as many, and everybody would wait for them."""
ANSWER_LIMIT: Final = 2 * 1024 * 1024
"""In base64, and perhaps twice, because of a note by whoever applied it."""
REQUEST_TIMEOUT: Final = 5.0
AT_ONCE: Final = 4
"""Secrets that are read at a time: the lease is renewed over the same few connections."""
KINDS: Final = {"kubernetes.io/dockerconfigjson": ".dockerconfigjson", "kubernetes.io/dockercfg": ".dockercfg"}
"""Types of secrets that are looked at, and the key under which each has what we need."""

log = logging.getLogger(__name__)


class SecretsClient(Protocol):
    """What is needed of the client."""

    async def request(self, method: str, path: str, *, timeout: float = 30.0, limit: int = 0) -> bytes:
        """Ask once; return the body or raise."""


class PullSecrets:
    """Reads the pull secrets of namespaces that allow it."""

    def __init__(self, client: SecretsClient) -> None:
        """Ask the API server through *client*."""
        self._client = client
        self._open: set[str] = set()
        self._kept: OrderedDict[tuple[str, str], tuple[float, Keyring | None]] = OrderedDict()
        """What each secret opens, and until when that is believed, the oldest first; None: nothing."""
        self._reading: dict[tuple[str, str], asyncio.Task[Keyring | None]] = {}
        self._free = asyncio.Semaphore(AT_ONCE)

    def namespace(self, name: str, annotations: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """A namespace appeared or changed; one that is gone has neither annotations nor labels."""
        if USE in (annotations.get(OPT_IN), labels.get(OPT_IN)):
            self._open.add(name)
        elif name in self._open:
            self._open.discard(name)
            for key in [one for one in self._kept if one[0] == name]:
                del self._kept[key]

    def of(self, pod: Pod) -> tuple[str, ...]:
        """Name the secrets that may be read for a pod; what no secret can be called names none."""
        if not pod.pull_secrets or pod.namespace not in self._open:
            return ()
        return tuple([name for name in pod.pull_secrets[:MOST_OF_A_POD] if NAME.fullmatch(name)])

    async def keyring(self, namespace: str, names: tuple[str, ...]) -> Keyring | None:
        """Return what these secrets open; None when they open nothing."""
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
        # Others wait for the same: one of them being cancelled must not end it.
        return await asyncio.shield(task)

    async def _fetch(self, key: tuple[str, str]) -> Keyring | None:
        namespace, name = key
        async with self._free:
            said = await self._ask(namespace, name)
        ring = None if said is None else Keyring.from_secrets([said])
        if ring is not None and ring.unreadable:
            self._complain(namespace, "pull secrets cannot be read in part: they are no Docker configurations")
        if namespace in self._open:
            self._kept[key] = (asyncio.get_running_loop().time() + KEPT_FOR, ring)
            self._kept.move_to_end(key)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return ring

    async def close(self) -> None:
        """Give up what is being read."""
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
            self._complain(namespace, f"a pull secret cannot be read: {error.status} {error.reason}")
        except UnreachableError as error:
            self._complain(namespace, f"a pull secret cannot be read: {error.problem}")
        except WireError:
            self._complain(namespace, "a pull secret cannot be read: it is no secret")
        else:
            return _usable(secret)
        return None

    def _complain(self, namespace: str, problem: str) -> None:
        log.warning(problem, extra={"fields": {"namespace": namespace}})


def _usable(secret: Secret) -> bytes | None:
    """Return what a secret says about registries; None when it is of another kind, or too large."""
    key = KINDS.get(secret.type)
    said = (secret.data or {}).get(key, b"") if key is not None else b""
    return said if 0 < len(said) <= LARGEST else None
