"""
Where the documents of an image layout are: a folder, a tar archive, or JSON files somebody saved one by one.

Only manifests, indexes and configurations are fetched, never layers; each is bounded, and is what its digest says or
is refused. Names of files are made from digests that have been checked, so nothing outside the layout is reached.
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
"""Files an archive may have."""


class BlobSource(Protocol):
    """A place that has documents by digest."""

    source: str
    """What a person calls it."""

    def get(self, digest: Digest) -> bytes | None:
        """Return a document, None when it is not there. Raises WireError when it is not what its digest says."""
        ...


class LayoutFolder:
    """A folder in OCI image layout."""

    def __init__(self, path: Path) -> None:
        """Look into *path*."""
        self.source = str(path)
        self._path = path

    def index(self) -> bytes | None:
        """Return the index that everything starts from, None when there is none."""
        return self._read(INDEX)

    def get(self, digest: Digest) -> bytes | None:
        """Return a document, None when it is not there."""
        return checked(self._read(_blob(digest)), digest)

    def _read(self, name: str) -> bytes | None:
        path = self._path / name
        return read_document(path) if path.is_file() else None


class LayoutArchive:
    """A tar archive in OCI image layout, as it is: a compressed one would have to be read from the start each time."""

    def __init__(self, path: Path) -> None:
        """List what is in *path*; `close` it, or use it in a ``with``."""
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
        """Let go of the file."""
        self._tar.close()

    def _list(self) -> None:
        try:
            for _ in range(MOST_MEMBERS + 1):
                if (member := self._tar.next()) is None:
                    return
                self._members[member.name.removeprefix("./")] = member
        except (tarfile.TarError, OSError, ValueError) as error:
            raise self._damaged(error) from error
        raise InputError.one(self.source, f"has more than {MOST_MEMBERS} files; is this an image?")

    def index(self) -> bytes | None:
        """Return the index that everything starts from, None when there is none."""
        return self._read(INDEX)

    def get(self, digest: Digest) -> bytes | None:
        """Return a document, None when it is not there."""
        return checked(self._read(_blob(digest)), digest)

    def _read(self, name: str) -> bytes | None:
        member = self._members.get(name)
        if member is None or not member.isfile():
            return None
        if member.size > MANIFEST_LIMIT:
            raise WireError(name, f"it has {member.size} bytes, more than the {MANIFEST_LIMIT} that are read")
        try:
            file = self._tar.extractfile(member)
            return file.read(MANIFEST_LIMIT) if file is not None else None
        except (tarfile.TarError, OSError, ValueError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> InputError:
        return InputError.one(self.source, f"is damaged or no tar archive ({error}); write it or copy it again")


class ManifestFiles:
    """Documents that were saved as files, found again by the digests of their bytes."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Read all of *paths*."""
        self.documents: dict[Digest, Path] = {}
        """Which file has which document, in the order they were named."""
        self._bytes: dict[Digest, bytes] = {}
        for path in paths:
            data = read_document(path)
            digest = digest_of(data)
            self._bytes[digest] = data
            self.documents[digest] = path
        self.source = " ".join(str(path) for path in self.documents.values())

    def get(self, digest: Digest) -> bytes | None:
        """Return a document, None when it is not there."""
        return self._bytes.get(digest)


def read_document(path: Path) -> bytes:
    """Read a file of which no more is expected than a manifest has."""
    try:
        with path.open("rb") as file:
            data = file.read(MANIFEST_LIMIT + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    if len(data) > MANIFEST_LIMIT:
        raise InputError.one(str(path), f"has more than the {MANIFEST_LIMIT} bytes of a manifest; is this the file?")
    return data


def unreadable(path: Path, error: OSError) -> InputError:
    """Say why a file cannot be read."""
    return InputError.one(str(path), f"cannot be read ({error.strerror}); check the name and its permissions")


def checked(data: bytes | None, digest: Digest) -> bytes | None:
    """Return bytes that are what *digest* names."""
    if data is not None:
        algorithm = digest.partition(":")[0]
        found = f"{algorithm}:{hashlib.new(algorithm, data).hexdigest()}"
        if found != digest:
            raise WireError("blob", f"the bytes have digest {found}; write the layout again", digest)
    return data


def _blob(digest: Digest) -> str:
    algorithm, _, encoded = digest.partition(":")
    return f"blobs/{algorithm}/{encoded}"
