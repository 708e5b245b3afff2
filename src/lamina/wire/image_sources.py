"""
Reader of image sources that a user names; the content decides the format, not the file name.

    a folder                             an OCI image layout
    a tar archive                        the same in one file (`docker save`, `podman save`, `buildx --output type=oci`)
    a catalog file                       see `lamina.wire.catalog_file`
    any other file                       a manifest or index as a registry serves it (`crane manifest`)
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

from lamina.model.errors import InputError
from lamina.model.image import Platform
from lamina.wire.catalog_file import BOUNDS, is_catalog, read_catalog
from lamina.wire.compressed_lines import GZIP_MAGIC, ZSTD_MAGIC, ReadBounds, read_lines
from lamina.wire.oci.blob_sources import LayoutArchive, LayoutFolder, ManifestFiles, unreadable
from lamina.wire.oci.image_layout import LayoutContents, read_documents, read_layout
from lamina.wire.oci.manifest import MANIFEST_LIMIT

Kind = Literal["layout", "archive", "catalog", "document"]

_TAR_MAGIC: Final = b"ustar"
_TAR_MAGIC_AT: Final = 257
# A manifest may be one long line.
_FIRST: Final = ReadBounds(MANIFEST_LIMIT, BOUNDS.size)


def read_sources(
    paths: Iterable[Path], name: str = "", platform: Platform | None = None
) -> Iterator[tuple[Path | None, LayoutContents]]:
    """
    Yield the content of each source, and then, under None, the joint content of all manifest files.

    *name* and *platform* are for images without one. Raises InputError for a source that cannot be read at all.
    """
    loose: list[Path] = []
    for path in paths:
        match kind_of(path):
            case "layout":
                yield path, read_layout(LayoutFolder(path), name, platform)
            case "archive":
                with LayoutArchive(path) as archive:
                    found = read_layout(archive, name, platform)
                yield path, found
            case "catalog":
                yield path, LayoutContents(images=list(read_catalog(path)))
            case "document":
                loose.append(path)
                yield path, LayoutContents()
    if loose:
        yield None, read_documents(ManifestFiles(loose), name, platform)


def kind_of(path: Path) -> Kind:
    """Return the format of a source. Raises InputError."""
    if path.is_dir():
        return "layout"
    try:
        with path.open("rb") as file:
            start = file.read(_TAR_MAGIC_AT + len(_TAR_MAGIC))
    except OSError as error:
        raise unreadable(path, error) from error
    if start[_TAR_MAGIC_AT:] == _TAR_MAGIC:
        return "archive"
    compressed = start.startswith((GZIP_MAGIC, ZSTD_MAGIC))
    if compressed or start.startswith(b"{"):
        _, line = next(read_lines(path, _FIRST), (0, b""))
        if is_catalog(line):
            return "catalog"
    if compressed:
        raise InputError.one(str(path), "is compressed and is not a catalog; decompress it first")
    return "document"
