"""
Locations of additional image stores, from the node's storage.conf.

If the host's root is mounted somewhere (``/host``), the file and its paths are resolved there. A configured store that
is not mounted is skipped: its layers are not reported, which only affects scores.
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
"""The first existing file is used, as in containers/storage."""
CONFIGURATION_LIMIT: Final = 1024 * 1024
STORE_LIMIT: Final = 16


def additional_stores(root: Path) -> tuple[Path, ...]:
    """Return the stores besides the one at *root*. Raises `RuntimeSourceError` if the configuration is unusable."""
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
    """Return the host's root, derived from the store's default path; None if the store is elsewhere."""
    usual = STORAGE.parts[1:]
    return Path(*root.parts[: -len(usual)]) if root.is_absolute() and root.parts[-len(usual) :] == usual else None


def _named(path: Path, data: bytes, host: Path) -> Iterator[Path]:
    try:
        storage: Any = tomllib.loads(data.decode()).get("storage", {})
        # `imagestore` keeps images in a separate store from containers.
        named = [*storage.get("options", {}).get("additionalimagestores", ()), storage.get("imagestore", "")]
        yield from (host / name.lstrip("/") for name in named if name)
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        problem = f"{path} is not valid: {error}; CRI-O would reject it too"
        raise RuntimeSourceError("cri-o", problem) from error


def _is_there(store: Path) -> bool:
    try:
        return find_store(store) is not None
    except OSError:
        return False
