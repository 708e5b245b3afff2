"""Whether a runtime is found on this machine, what it is, and how it reuses layers."""

from pathlib import Path
from typing import Final

from lamina.clients.cri.runtime_discovery import find_source
from lamina.clients.cri.runtime_source import RuntimeSource, RuntimeSourceError
from lamina.model.holdings import Holdings
from lamina.model.plain import plural
from lamina.services.doctor.finding import Finding, broken, fine, unseen, warned

REUSE_WORDS: Final = {
    "set": "any layer that is here is reused",
    "prefix": "only layers on top of the same base are reused (blobs are dropped after unpacking, or nothing is here yet)",
}


async def check_runtime(wanted: str, socket: Path | None, storage: Path | None) -> list[Finding]:
    """Look at the runtime; where none is to be expected, say so."""
    asked = wanted != "auto" or socket is not None or storage is not None
    try:
        source = await find_source(wanted, socket=socket, storage=storage, disk=None)
    except RuntimeSourceError as error:
        if asked:
            return [broken("runtime", error.problem, "name it: --runtime containerd --socket PATH, as root")]
        return [unseen("runtime", "none was found here", "run this on a node, as root, to look at its runtime")]
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
    """Look whether the runtime also speaks to kubelets, as it must on a node."""
    if not place.is_socket():
        return unseen("CRI", "its files are read, so its socket was not asked")
    from lamina.clients.cri.plain.cri_client import CriClient

    calls = CriClient(place)
    try:
        told = await calls.version()
    except RuntimeSourceError as error:
        return warned("CRI", error.problem, "switch the runtime's CRI plugin on: kubelets need it")
    finally:
        await calls.close()
    return fine("CRI", f"{told.runtime_api_version:.20} by {told.runtime_name:.40} {told.runtime_version:.40}")


def _reuse(found: Holdings) -> Finding:
    return fine("reuse mode", REUSE_WORDS[found.reuse])


def _disk(found: Holdings) -> Finding:
    if not found.disk:
        advice = "give the agent a read-only view of the image folder: --disk PATH"
        return warned("disk", "how large the disk for images is cannot be seen", advice)
    share = 100 * found.disk_free // found.disk
    if share < 15:
        return warned("disk", f"{share} % free", "kubelets drop unused images below 15 %; make room")
    return fine("disk", f"{share} % free")
