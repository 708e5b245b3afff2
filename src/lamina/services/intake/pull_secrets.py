"""
Pull secrets of pods, where their namespace lets us use them.

A namespace lets us by a label or annotation ``lamina.dev/pull-secrets: use``, and by a RoleBinding to the role
`lamina-pull-secrets`: both are needed, and there is no right to secrets beyond. Read are the secrets a pod names in
``imagePullSecrets`` and no others. (Where the pod names none, the API server has written those of its service account
there.) What they say stays in memory for a minute, and is told to nobody but the registry it is for.
"""

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, Protocol
from urllib.parse import quote

import msgspec

from lamina.clients.kube.errors import ApiError, Unreachable
from lamina.clients.oci.keyring import Keyring
from lamina.model.pod import Pod

OPT_IN: Final = "lamina.dev/pull-secrets"
USE: Final = "use"
KEPT_FOR: Final = 60.0
MOST_KEPT: Final = 1000
MOST_OF_A_POD: Final = 8
NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
"""The API server does not look at what pods write here, and the name becomes part of a path."""
LARGEST: Final = 1024 * 1024
"""Bytes of a secret's data, as many as Kubernetes allows."""
PATIENCE: Final = 5.0
KINDS: Final = {"kubernetes.io/dockerconfigjson": ".dockerconfigjson", "kubernetes.io/dockercfg": ".dockercfg"}
"""Types of secrets that are looked at, and the key under which each has what we need."""

log = logging.getLogger(__name__)


class Secret(msgspec.Struct, frozen=True, gc=False):
    """A secret, as far as it is looked at. Nothing prints it: its data stay where they are."""

    type: str = ""
    data: dict[str, bytes] | None = None

    def __repr__(self) -> str:
        return f"Secret(type={self.type!r:.80})"


class Asker(Protocol):
    """What is needed of the client."""

    async def request(self, method: str, path: str, *, timeout: float = 30.0, limit: int = 0) -> bytes:
        """Ask once; return the body or raise."""


_SECRET: Final = msgspec.json.Decoder(Secret)


class PullSecrets:
    """Reads the pull secrets of namespaces that allow it."""

    def __init__(self, client: Asker) -> None:
        """Ask the API server through *client*."""
        self._client = client
        self._open: set[str] = set()
        self._kept: OrderedDict[tuple[str, str], tuple[float, bytes | None]] = OrderedDict()
        """What each secret says, and until when that is believed; None: nothing that can be used."""

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
        if not usable:
            return None
        keyring = Keyring.from_secrets(usable)
        if keyring.unreadable:
            self._complain(namespace, "pull secrets cannot be read in part: they are no Docker configurations")
        return keyring

    async def _read(self, namespace: str, name: str) -> bytes | None:
        key, now = (namespace, name), asyncio.get_running_loop().time()
        until, said = self._kept.get(key, (0.0, None))
        if until > now:
            return said
        said = await self._ask(namespace, name)
        self._kept[key] = (now + KEPT_FOR, said)
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return said

    async def _ask(self, namespace: str, name: str) -> bytes | None:
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/secrets/{quote(name, safe='')}"
        try:
            # In base64, and with what the API server adds, a secret is longer than its data.
            body = await self._client.request("GET", path, timeout=PATIENCE, limit=2 * LARGEST)
            secret = _SECRET.decode(body)
        except ApiError as error:
            self._complain(namespace, f"a pull secret cannot be read: {error.status} {error.reason}")
        except Unreachable as error:
            self._complain(namespace, f"a pull secret cannot be read: {error.problem}")
        except (ValueError, RecursionError):
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
