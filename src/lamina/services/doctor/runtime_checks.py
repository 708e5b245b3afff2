"""Checks of the container runtime on this machine: which one it is, and how it reuses layers."""

from pathlib import Path
from typing import Final

from lamina.clients.cri.runtime_discovery import find_source
from lamina.clients.cri.runtime_source import RuntimeSource, RuntimeSourceError
from lamina.model.holdings import Holdings
from lamina.model.plain import plural
from lamina.services.doctor.finding import Finding, broken, fine, unseen, warned

REUSE_WORDS: Final = {
    "set": "any layer held here is reused",
    "prefix": "only layers on top of the same base are reused (blobs are dropped after unpacking, or no image is here)",
}


async def check_runtime(wanted: str, socket: Path | None, storage: Path | None) -> list[Finding]:
    """Check the runtime; without options, skip the check if no runtime is found."""
    asked = wanted != "auto" or socket is not None or storage is not None
    try:
        source = await find_source(wanted, socket=socket, storage=storage, disk=None)
    except RuntimeSourceError as error:
        if asked:
            return [broken("runtime", error.problem, "name it: --runtime containerd --socket PATH, as root")]
        return [unseen("runtime", "no runtime was found here", "run this on a node, as root, to look at its runtime")]
    try:
        found = await source.look()
    except RuntimeSourceError as error:
        return [broken("runtime", str(error), "is it running, and may you open its socket?")]
    finally:
        await source.close()
    return [_facts(source, found), await _cri(source.place), _reuse(found), _disk(found)]


def _facts(source: RuntimeSource, found: Holdings) -> Finding:
    runtime = f"{found.runtime.name} {found.runtime.version}".strip()
    return fine("runtime", f"{runtime or 'unnamed'} at {source.place}, {plural(len(found.images), 'image')}")


async def _cri(place: Path) -> Finding:
    """Check that the runtime also serves CRI to kubelets, as every node needs."""
    if not place.is_socket():
        return unseen("CRI", "skipped: storage files were read, not the socket")
    from lamina.clients.cri.plain.cri_client import CriClient

    calls = CriClient(place)
    try:
        told = await calls.version()
    except RuntimeSourceError as error:
        return warned("CRI", error.problem, "enable the runtime's CRI plugin: kubelets need it")
    finally:
        await calls.close()
    return fine("CRI", f"{told.runtime_api_version:.20} by {told.runtime_name:.40} {told.runtime_version:.40}")


def _reuse(found: Holdings) -> Finding:
    return fine("reuse mode", REUSE_WORDS[found.reuse])


def _disk(found: Holdings) -> Finding:
    if not found.disk:
        advice = "give the node agent read-only access to the image folder: --disk PATH"
        return warned("disk", "the size of the image disk is unknown", advice)
    share = 100 * found.disk_free // found.disk
    if share < 15:
        return warned("disk", f"{share} % free", "kubelets delete unused images below 15 %: free some space")
    return fine("disk", f"{share} % free")
