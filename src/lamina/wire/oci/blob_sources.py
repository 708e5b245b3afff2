"""
Sources of the documents of an image layout: a folder, a tar archive, or separately saved JSON files.

Only manifests, indexes and configurations are read, never layers. Each is bounded in size and verified against its
digest. File names are made from validated digests, so nothing outside the layout is read.
"""

import hashlib
import tarfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from lamina.model.digest import Digest, digest_of
from lamina.model.errors import InputError
from lamina.wire.errors import WireError
from lamina.wire.oci.manifest import MANIFEST_LIMIT

INDEX: Final = "index.json"
MOST_MEMBERS: Final = 200_000
"""Largest number of files in an archive."""


class BlobSource(Protocol):
    """A source of documents by digest."""

    source: str
    """Name of the source in messages."""

    def get(self, digest: Digest) -> bytes | None:
        """Return a document, or None when it is missing. Raises WireError when it does not match its digest."""
        ...


class LayoutFolder:
    """A folder in OCI image layout."""

    def __init__(self, path: Path) -> None:
        """Read from *path*."""
        self.source = str(path)
        self._path = path

    def index(self) -> bytes | None:
        """Return the top-level index, or None when it is missing."""
        return self._read(INDEX)

    def get(self, digest: Digest) -> bytes | None:
        """Return a document, or None when it is missing. Raises WireError."""
        return checked(self._read(_blob(digest)), digest)

    def _read(self, name: str) -> bytes | None:
        path = self._path / name
        return read_document(path) if path.is_file() else None


class LayoutArchive:
    """
    An uncompressed tar archive in OCI image layout.

    Compressed archives are not supported, because each access would have to read them from the start.
    """

    def __init__(self, path: Path) -> None:
        """List the files in *path*. The caller must `close` it, or use ``with``."""
        self.source = str(path)
        self._members: dict[str, tarfile.TarInfo] = {}
        try:
            self._tar = tarfile.open(path, "r:")  # noqa: SIM115 - closed by `close`
        except (tarfile.TarError, OSError, ValueError) as error:
            raise self._damaged(error) from error
        try:
            self._list()
        except BaseException:
            self._tar.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._tar.close()

    def _list(self) -> None:
        try:
            for _ in range(MOST_MEMBERS + 1):
                if (member := self._tar.next()) is None:
                    return
                self._members[member.name.removeprefix("./")] = member
        except (tarfile.TarError, OSError, ValueError) as error:
            raise self._damaged(error) from error
        raise InputError.one(self.source, f"has more than {MOST_MEMBERS} files; check that it is an image")

    def index(self) -> bytes | None:
        """Return the top-level index, or None when it is missing."""
        return self._read(INDEX)

    def get(self, digest: Digest) -> bytes | None:
        """Return a document, or None when it is missing. Raises WireError."""
        return checked(self._read(_blob(digest)), digest)

    def _read(self, name: str) -> bytes | None:
        member = self._members.get(name)
        if member is None or not member.isfile():
            return None
        if member.size > MANIFEST_LIMIT:
            raise WireError(name, f"it has {member.size} bytes, the limit is {MANIFEST_LIMIT}")
        try:
            file = self._tar.extractfile(member)
            return file.read(MANIFEST_LIMIT) if file is not None else None
        except (tarfile.TarError, OSError, ValueError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> InputError:
        return InputError.one(self.source, f"is damaged or not a tar archive ({error}); write it or copy it again")


class ManifestFiles:
    """Documents that were saved as files, found by the digests of their bytes."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Read all of *paths*. Raises InputError."""
        self.documents: dict[Digest, Path] = {}
        """Digest → file, in the order of *paths*."""
        self._bytes: dict[Digest, bytes] = {}
        for path in paths:
            data = read_document(path)
            digest = digest_of(data)
            self._bytes[digest] = data
            self.documents[digest] = path
        self.source = " ".join(str(path) for path in self.documents.values())

    def get(self, digest: Digest) -> bytes | None:
        """Return a document, or None when it is missing."""
        return self._bytes.get(digest)


def read_document(path: Path) -> bytes:
    """Return the content of a file that is at most as large as a manifest. Raises InputError."""
    try:
        with path.open("rb") as file:
            data = file.read(MANIFEST_LIMIT + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    if len(data) > MANIFEST_LIMIT:
        raise InputError.one(
            str(path), f"has more than {MANIFEST_LIMIT} bytes, the limit of a manifest; check the file name"
        )
    return data


def unreadable(path: Path, error: OSError) -> InputError:
    """Return the error for a file that cannot be read."""
    return InputError.one(str(path), f"cannot be read ({error.strerror}); check the name and its permissions")


def checked(data: bytes | None, digest: Digest) -> bytes | None:
    """Return *data* if it matches *digest*. Raises WireError otherwise."""
    if data is not None:
        algorithm = digest.partition(":")[0]
        found = f"{algorithm}:{hashlib.new(algorithm, data).hexdigest()}"
        if found != digest:
            raise WireError("blob", f"the bytes have digest {found}; write the layout again", digest)
    return data


def _blob(digest: Digest) -> str:
    algorithm, _, encoded = digest.partition(":")
    return f"blobs/{algorithm}/{encoded}"
