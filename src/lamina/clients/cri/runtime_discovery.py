"""
Finds the container runtime of this node, and the best way to look at it.

    crio         the files of its store: compressed and unpacked digests and sizes, without asking anybody
    containerd   its own API: the same, and pulls that are under way
    cri          what a kubelet sees: names, and layers at best by their diff ids
    auto         CRI-O's store where CRI-O is, else a containerd that answers, else whatever speaks CRI

A containerd that was too busy to answer is no other runtime: it may answer a moment later over CRI, and is then asked again
for its own API. Whoever settled for less would do without manifests for as long as the runtime runs.

What is asked for and cannot be had is no reason to take something else: it is said, place by place. gRPC is loaded only
where a socket is asked, so that reading CRI-O's files needs nothing but Lamina.
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
"""Where runtimes listen by default, in the order in which they are tried."""
GRPC: Final = ("grpc", "google")
INSTALL: Final = (
    "gRPC is not installed: pip install 'lamina[agent]', "
    "or in a checkout: .venv/bin/pip install -c constraints.txt -e '.[agent]'"
)

NAMESPACE: Final = "k8s.io"
"""Where a kubelet has containerd keep its images."""

SourceAttempt: TypeAlias = Callable[[], Awaitable[RuntimeSource]]


class RuntimeConnection(Protocol):
    """A connection to a runtime, of whichever kind."""

    async def version(self) -> object:
        """Which runtime it is."""

    async def close(self) -> None:
        """Hang up."""


async def find_source(wanted: str, *, socket: Path | None, storage: Path | None, disk: Path | None) -> RuntimeSource:
    """
    Open the runtime that is *wanted*, one of `WANTED`.

    *socket* and *storage* say where it is, if not where runtimes usually are; *disk* is a folder on the file system that
    holds the images. Raises `RuntimeSourceError` with every place that was tried, and why it was not that.
    """
    if wanted not in WANTED:
        raise RuntimeSourceError(wanted, f"there is no such way to look; choose one of {', '.join(WANTED)}")
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
    tried = "; ".join(dict.fromkeys(problems)) or f"there is none of {', '.join(map(str, _usual(wanted)))}"
    raise RuntimeSourceError(wanted, f"no runtime was found: {tried}; say where it is by its socket or its storage")


def _attempts(wanted: str, socket: Path | None, storage: Path | None, disk: Path | None) -> Sequence[SourceAttempt]:
    """What to try, the best first."""
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
    """Whether there is a CRI-O, and not only files that podman or an earlier CRI-O left."""
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
    """Take what speaks CRI, but not a containerd that would tell more."""
    source, runtime = await _cri(socket, disk)
    if runtime != CONTAINERD:
        return source
    from lamina.clients.cri.containerd.containerd_client import RuntimeAnswerError

    try:
        return await _containerd(socket, disk)
    except RuntimeAnswerError:
        return source  # it answers, and says no: something stands before it that lets only CRI through


async def _cri(socket: Path, disk: Path | None) -> tuple[RuntimeSource, str]:
    try:
        from lamina.clients.cri.plain.cri_client import CriClient
        from lamina.clients.cri.plain.cri_source import CriSource
    except ModuleNotFoundError as error:
        raise _missing(CRI, socket, error) from error
    _insist_on_a_socket(socket)
    calls = CriClient(socket)
    await _ask(calls)
    return CriSource(socket, disk=disk), calls.name


def _insist_on_a_socket(path: Path) -> None:
    """Say it in words of our own, once for all ways to ask."""
    if not _is_socket(path):
        raise RuntimeSourceError("runtime", f"{path} is no socket: see whether the runtime runs")


async def _ask(calls: RuntimeConnection) -> None:
    """See whether somebody answers, over a connection for that alone. Raises `RuntimeSourceError`."""
    try:
        await calls.version()
    finally:
        await calls.close()


def _missing(runtime: str, socket: Path, error: ModuleNotFoundError) -> Exception:
    """One line about what has to be installed; anything else that is missing is our own fault."""
    if (error.name or "").partition(".")[0] not in GRPC:
        return error
    return RuntimeSourceError(runtime, f"{socket} cannot be asked: {INSTALL}")
