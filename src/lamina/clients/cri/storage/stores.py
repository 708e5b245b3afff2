"""
One containers/storage store on disk: a folder of images and one of layers, named after the storage driver.

    <root>/overlay-images/images.json                 all complete images
    <root>/overlay-images/<image>/manifest            its documents
    <root>/overlay-layers/{layers,volatile-layers}.json

Images are read before layers. An image's layers are recorded before it, so an image that appears during a look never
lacks its layers. A removal during a look is detected, because the file is replaced.
"""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from lamina.clients.cri.storage import store_files, store_records
from lamina.clients.cri.storage.store_files import FileState, UnsettledFileError
from lamina.clients.cri.storage.store_records import ImageRecord, LayerRecord
from lamina.wire.oci.manifest import MANIFEST_LIMIT

DRIVERS: Final = ("overlay", "vfs", "btrfs", "zfs")
"""Storage drivers in search order; CRI-O's default first."""
LIST_LIMIT: Final = 32 * 1024 * 1024
"""Bytes of a list file: a layer takes about 600, an image about 2,000."""
IMAGES: Final = "images.json"
LAYERS: Final = ("layers.json", "volatile-layers.json")

T = TypeVar("T")


class StoreState(msgspec.Struct, frozen=True):
    """File states of a store's lists."""

    images: FileState | None
    layers: tuple[FileState | None, ...]


class ContainersStore(msgspec.Struct, frozen=True):
    """Root folder and driver of a store."""

    root: Path
    driver: str

    @property
    def images_folder(self) -> str:
        """Relative to the root."""
        return f"{self.driver}-images"

    @property
    def layers_folder(self) -> str:
        """Relative to the root."""
        return f"{self.driver}-layers"

    def marks(self) -> StoreState:
        """Return the file states of its lists, without reading them. Raises OSError."""
        with store_files.folder(str(self.root)) as root:
            with store_files.folder(self.images_folder, root) as images:
                mark = store_files.mark(IMAGES, images)
            with store_files.folder(self.layers_folder, root) as layers:
                return StoreState(mark, tuple(store_files.mark(name, layers) for name in LAYERS))

    def images(self) -> list[ImageRecord]:
        """Return all images, oldest first. Raises `UnusableFileError` and OSError."""
        with store_files.folder(str(self.root)) as root, store_files.folder(self.images_folder, root) as folder:
            return _listed(IMAGES, folder, store_records.decode_images)

    def layers(self) -> list[LayerRecord]:
        """Return all layers, those of containers included. Raises `UnusableFileError` and OSError."""
        with store_files.folder(str(self.root)) as root, store_files.folder(self.layers_folder, root) as folder:
            return [layer for name in LAYERS for layer in _listed(name, folder, store_records.decode_layers)]

    def document(self, image: ImageRecord, name: str) -> bytes:
        """Return a document of an image. Raises `UnusableFileError` and OSError."""
        with (
            store_files.folder(str(self.root)) as root,
            store_files.folder(self.images_folder, root) as images,
            store_files.folder(image.id, images) as folder,
        ):
            return store_files.read(store_records.document_file(name), folder, MANIFEST_LIMIT)


def find_store(root: Path) -> ContainersStore | None:
    """Return the store at *root*; None if there is none. Raises OSError if the folder cannot be opened."""
    with store_files.folder(str(root)) as descriptor:
        for driver in DRIVERS:
            store = ContainersStore(root, driver)
            if all(_is_folder(name, descriptor) for name in (store.images_folder, store.layers_folder)):
                return store
    return None


def _is_folder(name: str, within: int) -> bool:
    try:
        with store_files.folder(name, within):
            return True
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno != errno.ELOOP:  # a symbolic link, which is not followed
            raise
        return False


def _listed(name: str, folder: int, decode: Callable[[bytes], list[T]]) -> list[T]:
    try:
        data = store_files.read(name, folder, LIST_LIMIT)
    except FileNotFoundError:
        # The file is created with the first image.
        return []
    if not data:
        raise UnsettledFileError(name, "is empty")
    try:
        return decode(data)
    except (ValueError, RecursionError) as error:
        # Possibly a partial write: retry.
        raise UnsettledFileError(name, f"cannot be decoded: {error}") from error
