"""
What Lamina's two custom resources have in common: API group, names, and the reading of list pages.

Nodes write these objects, and a node may be broken or compromised. So the size of an object is checked before it is
decoded, and every fault is reported as one `WireError` of one line.
"""

from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

import msgspec
from msgspec import Raw

from lamina.model.digest import Digest, DigestError, parse_digest
from lamina.wire.errors import NothingSaidError, WireError
from lamina.wire.kube.meta import ListMeta, ObjectMeta

GROUP: Final = "lamina.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

# What the API server adds to the object: uid, times, managed fields. Observed: less than 2 KiB.
METADATA_LIMIT: Final = 16 * 1024

_PREFIX: Final = "sha256-"


class CustomObject(Protocol):
    """An object of either custom resource."""

    @property
    def kind(self) -> str | None:
        """The ``kind`` field of the object."""

    @property
    def metadata(self) -> ObjectMeta:
        """The object's metadata."""


M = TypeVar("M")
W = TypeVar("W", bound=CustomObject)


class CustomResourcePage(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """One page of a list."""

    items: tuple[M, ...]
    resource_version: str = ""
    """Resource version from which a watch continues this list."""
    continue_token: str = ""
    """Token for the next page; empty on the last page."""
    refused: tuple[WireError, ...] = ()
    """One error for each object that could not be read and is therefore missing from *items*."""


class UnreadCustomList(msgspec.Struct, frozen=True, gc=False):
    """A list whose objects are not decoded yet."""

    kind: str | None = None
    metadata: ListMeta = ListMeta()
    items: list[Raw] | None = None


_PAGE: Final = msgspec.json.Decoder(UnreadCustomList)


class CustomResourceReader(Generic[W, M]):
    """Decodes objects of one custom resource, alone and in lists."""

    def __init__(self, kind: str, decoder: msgspec.json.Decoder[W], limit: int, convert: Callable[[W], M]) -> None:
        """Accept at most *limit* bytes; *convert* raises ValueError for an invalid object."""
        self.kind = kind
        self.limit = limit
        self._decoder = decoder
        self._convert = convert

    def one(self, data: bytes | Raw) -> M:
        """Return one object. Raises WireError."""
        size = memoryview(data).nbytes
        if size > self.limit:
            raise self._error(f"it has {size} bytes, the limit is {self.limit}")
        try:
            found = self._decoder.decode(data)
        except (ValueError, RecursionError) as error:
            raise self._error(f"{error}; check which client wrote it") from error
        if found.kind and found.kind != self.kind:
            raise self._error(f"this is a {found.kind:.80}; ask for {self.kind.lower()}")
        try:
            return self._convert(found)
        except NothingSaidError:
            raise
        except WireError as error:
            raise self._error(error.problem, found.metadata.name) from error
        except ValueError as error:
            raise self._error(str(error), found.metadata.name) from error

    def _error(self, problem: str, name: str = "") -> WireError:
        # Quoted parts of the object must stay on one line.
        return WireError(self.kind, " ".join(problem.split()), " ".join(f"{name:.80}".split()))

    def many(self, data: bytes) -> CustomResourcePage[M]:
        """Return a list page; an unreadable object is skipped and listed in ``refused``."""
        listed = f"{self.kind}List"
        try:
            page = _PAGE.decode(data)
        except (ValueError, RecursionError) as error:
            raise WireError(listed, f"{error}; check that a Kubernetes API server sent it") from error
        if page.kind and page.kind not in (listed, "List"):
            raise WireError(listed, f"this is a {page.kind:.80}; ask for a list of {self.kind.lower()}")
        items: list[M] = []
        refused: list[WireError] = []
        for item in page.items or ():
            try:
                items.append(self.one(item))
            except NothingSaidError:
                continue
            except WireError as error:
                # A new error, because the raised one keeps the received bytes alive.
                refused.append(WireError(*error.args))
        return CustomResourcePage(
            items=tuple(items),
            resource_version=page.metadata.resource_version,
            continue_token=page.metadata.continue_token or "",
            refused=tuple(refused),
        )


def object_name(digest: Digest) -> str:
    """Return the object name of a manifest's ImageLayers; object names cannot have a colon."""
    return digest.replace(":", "-", 1)


def digest_in(name: str) -> Digest:
    """Return the digest in the name of an ImageLayers. Raises ValueError if there is none."""
    if not name.startswith(_PREFIX):
        raise ValueError("its name is not sha256- followed by 64 lower-case hexadecimal digits")
    try:
        return parse_digest(f"sha256:{name.removeprefix(_PREFIX)}")
    except DigestError as error:
        raise ValueError("its name is not sha256- followed by 64 lower-case hexadecimal digits") from error
