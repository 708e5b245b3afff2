"""
Where further image stores are, as storage.conf of the node says.

The file stands beside the host's folders, not in the store. When the host is mounted somewhere (``/host``), both the
file and the paths in it are looked for there. A store that is named and not mounted is left out: layers in it are then
not told, which costs a preference and nothing else.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.clients.cri.storage import store_files
from lamina.clients.cri.storage.store_files import UnusableFileError
from lamina.clients.cri.storage.stores import find_store

STORAGE: Final = Path("/var/lib/containers/storage")
CONFIGURATIONS: Final = ("etc/containers/storage.conf", "usr/share/containers/storage.conf")
"""The first that is there counts, as for containers/storage itself."""
CONFIGURATION_LIMIT: Final = 1024 * 1024
STORE_LIMIT: Final = 16


def additional_stores(root: Path) -> tuple[Path, ...]:
    """The stores beside the one at *root*. Raises `RuntimeSourceError` when the configuration cannot be used."""
    host = host_folder(root)
    if host is None:
        return ()
    for name in CONFIGURATIONS:
        path = host / name
        try:
            with store_files.folder(str(path.parent)) as folder:
                data = store_files.read(path.name, folder, CONFIGURATION_LIMIT)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (UnusableFileError, OSError) as error:
            raise RuntimeSourceError("cri-o", f"{path} cannot be read: {error}") from error
        return tuple(store for store in _named(path, data, host) if store != root and _is_there(store))[:STORE_LIMIT]
    return ()


def host_folder(root: Path) -> Path | None:
    """Where the host's own root is, judged by the store's usual place in it; None when the store is elsewhere."""
    usual = STORAGE.parts[1:]
    return Path(*root.parts[: -len(usual)]) if root.is_absolute() and root.parts[-len(usual) :] == usual else None


def _named(path: Path, data: bytes, host: Path) -> Iterator[Path]:
    try:
        storage: Any = tomllib.loads(data.decode()).get("storage", {})
        # Images may also be kept apart from containers, in a store of their own.
        named = [*storage.get("options", {}).get("additionalimagestores", ()), storage.get("imagestore", "")]
        yield from (host / name.lstrip("/") for name in named if name)
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        problem = f"{path} cannot be understood: {error}; CRI-O would not take it either"
        raise RuntimeSourceError("cri-o", problem) from error


def _is_there(store: Path) -> bool:
    try:
        return find_store(store) is not None
    except OSError:
        return False
