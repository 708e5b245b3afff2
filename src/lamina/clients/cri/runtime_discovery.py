"""
Discovery of the node's container runtime, and of the best way to read its images.

    crio         its store's files: compressed and unpacked digests and sizes, without a request to the runtime
    containerd   its own API: the same, and active pulls
    cri          what a kubelet sees: names, and at best the diff ids of layers
    auto         CRI-O's store if CRI-O runs, else a containerd that responds, else any runtime that speaks CRI

A containerd that is too busy to respond to its own API may respond to CRI a moment later. Its own API is then tried
again, because plain CRI would give no manifests for as long as the node agent runs.

If a requested way fails, no other is used: the error lists every place that was tried. gRPC is imported only for
sockets, so reading CRI-O's files needs no extra package.
"""

import importlib.util
import stat
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from lamina.clients.cri.runtime_source import RuntimeSource, RuntimeSourceError
from lamina.clients.cri.storage.storage_conf import STORAGE, additional_stores
from lamina.clients.cri.storage.storage_source import StorageSource
from lamina.clients.cri.storage.stores import find_store
from lamina.model.errors import LaminaError

AUTO: Final = "auto"
CONTAINERD: Final = "containerd"
CRIO: Final = "crio"
CRI: Final = "cri"
WANTED: Final = (AUTO, CONTAINERD, CRIO, CRI)

CONTAINERD_SOCKETS: Final = (
    Path("/run/containerd/containerd.sock"),
    Path("/run/k3s/containerd/containerd.sock"),  # k3s and RKE2
    Path("/run/k0s/containerd.sock"),
    Path("/var/snap/microk8s/common/run/containerd.sock"),
)
CRIO_SOCKETS: Final = (Path("/run/crio/crio.sock"), Path("/var/run/crio/crio.sock"))
KNOWN_SOCKETS: Final = (
    *CONTAINERD_SOCKETS,
    *CRIO_SOCKETS,
    Path("/run/cri-dockerd.sock"),
    Path("/var/run/cri-dockerd.sock"),
)
"""Default sockets of runtimes, in the order in which they are tried."""
GRPC: Final = ("grpc", "google")
INSTALL: Final = (
    "gRPC is not installed: pip install 'lamina[agent]', "
    "or in a checkout: .venv/bin/pip install -c constraints.txt -e '.[agent]'"
)

NAMESPACE: Final = "k8s.io"
"""The containerd namespace of a kubelet's images."""

SourceAttempt: TypeAlias = Callable[[], Awaitable[RuntimeSource]]


class RuntimeConnection(Protocol):
    """A connection to a runtime of any kind."""

    async def version(self) -> object:
        """Return the runtime's version."""

    async def close(self) -> None:
        """Close the connection."""


async def find_source(wanted: str, *, socket: Path | None, storage: Path | None, disk: Path | None) -> RuntimeSource:
    """
    Open the runtime that is *wanted*, one of `WANTED`.

    *socket* and *storage* override the default locations; *disk* is a folder on the file system that holds the images.
    Raises `RuntimeSourceError` that lists every place that was tried, with its problem.
    """
    if wanted not in WANTED:
        raise RuntimeSourceError(wanted, f"unknown runtime; choose one of {', '.join(WANTED)}")
    problems: list[str] = []
    for attempt in _attempts(wanted, socket, storage, disk):
        try:
            return await attempt()
        except LaminaError as trouble:
            problems.append(str(trouble))
    if wanted != CRIO and not problems and importlib.util.find_spec(GRPC[0]) is None:
        # No socket is there, so none was asked: without this line the user would meet the missing package only later.
        problems += [f"there is none of {', '.join(map(str, _usual(wanted)))}", INSTALL]
    if wanted == AUTO and storage is None and not _crio_runs(socket) and _has_store(STORAGE):
        problems.append(f"{STORAGE} is an image store, but no CRI-O listens; name it as the storage to read it")
    tried = "; ".join(dict.fromkeys(problems)) or f"none of {', '.join(map(str, _usual(wanted)))} exists"
    raise RuntimeSourceError(wanted, f"no runtime found: {tried}; name its socket or its storage")


def _attempts(wanted: str, socket: Path | None, storage: Path | None, disk: Path | None) -> Sequence[SourceAttempt]:
    """Return the attempts to make, best first."""
    attempts: list[SourceAttempt] = []
    if wanted == CRIO or (wanted == AUTO and (storage is not None or _crio_runs(socket))):
        attempts.append(partial(_store, storage or STORAGE))
    if wanted == AUTO and storage is not None and socket is None:
        return attempts
    sockets = [socket] if socket is not None else [path for path in _usual(wanted) if _is_socket(path)]
    if wanted in (AUTO, CONTAINERD):
        attempts += [partial(_containerd, path, disk) for path in sockets if path not in CRIO_SOCKETS]
    if wanted in (AUTO, CRI):
        attempts += [partial(_any if wanted == CRI else _other, path, disk) for path in sockets]
    return attempts


def _usual(wanted: str) -> Sequence[Path]:
    return (STORAGE,) if wanted == CRIO else CONTAINERD_SOCKETS if wanted == CONTAINERD else KNOWN_SOCKETS


def _crio_runs(socket: Path | None) -> bool:
    """Return whether CRI-O has a socket; files alone may be remains of podman or of a removed CRI-O."""
    sockets = CRIO_SOCKETS if socket is None else (socket,)
    return any(path.name == CRIO_SOCKETS[0].name and _is_socket(path) for path in sockets)


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _has_store(root: Path) -> bool:
    try:
        return find_store(root) is not None
    except OSError:
        return False


async def _store(root: Path) -> RuntimeSource:
    try:
        store = find_store(root)
    except OSError as error:
        raise RuntimeSourceError("cri-o", f"{root}: {(error.strerror or 'cannot be read').lower()}") from error
    if store is None:
        raise RuntimeSourceError("cri-o", f"{root}: there is no image store; name the folder that holds overlay-images")
    return StorageSource(root, additional=additional_stores(root))


async def _containerd(socket: Path, disk: Path | None) -> RuntimeSource:
    try:
        from lamina.clients.cri.containerd.containerd_client import ContainerdClient
        from lamina.clients.cri.containerd.containerd_source import ContainerdSource
    except ModuleNotFoundError as error:
        raise _missing(CONTAINERD, socket, error) from error
    _insist_on_a_socket(socket)
    await _ask(ContainerdClient(socket, NAMESPACE))
    return ContainerdSource(socket, disk=disk)


async def _any(socket: Path, disk: Path | None) -> RuntimeSource:
    source, _ = await _cri(socket, disk)
    return source


async def _other(socket: Path, disk: Path | None) -> RuntimeSource:
    """Open a CRI runtime; if it is containerd, prefer its own API."""
    source, runtime = await _cri(socket, disk)
    if runtime != CONTAINERD:
        return source
    from lamina.clients.cri.containerd.containerd_client import RuntimeAnswerError

    try:
        return await _containerd(socket, disk)
    except RuntimeAnswerError:
        return source  # its own API responds with an error: a proxy in front of it may allow only CRI


async def _cri(socket: Path, disk: Path | None) -> tuple[RuntimeSource, str]:
    try:
        from lamina.clients.cri.plain.cri_client import CriClient
        from lamina.clients.cri.plain.cri_source import CriSource
    except ModuleNotFoundError as error:
        raise _missing(CRI, socket, error) from error
    _insist_on_a_socket(socket)
    client = CriClient(socket)
    await _ask(client)
    return CriSource(socket, disk=disk), client.name


def _insist_on_a_socket(path: Path) -> None:
    """Raise RuntimeSourceError if *path* is not a socket."""
    if not _is_socket(path):
        raise RuntimeSourceError("runtime", f"{path} is not a socket; check that the runtime runs")


async def _ask(client: RuntimeConnection) -> None:
    """Check that the runtime responds, over a separate connection. Raises `RuntimeSourceError`."""
    try:
        await client.version()
    finally:
        await client.close()


def _missing(runtime: str, socket: Path, error: ModuleNotFoundError) -> Exception:
    """Return an error that names the missing package; any other import error is returned unchanged."""
    if (error.name or "").partition(".")[0] not in GRPC:
        return error
    return RuntimeSourceError(runtime, f"{socket} cannot be queried: {INSTALL}")
