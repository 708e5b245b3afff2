"""
What Lamina's own two kinds of object have in common: their API group, how they are called, and how pages of them are read.

Nodes write these objects, and a node may be broken or taken over. So an object is measured before it is looked at, and
whatever is wrong with it is one `WireError` of one line.
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

# What the API server adds to what an agent wrote: uid, times, who wrote which field. Seen: less than 2 KiB.
METADATA_LIMIT: Final = 16 * 1024

_PREFIX: Final = "sha256-"


class CustomObject(Protocol):
    """An object of either kind."""

    @property
    def kind(self) -> str | None:
        """What it says it is."""

    @property
    def metadata(self) -> ObjectMeta:
        """What every object has."""


M = TypeVar("M")
W = TypeVar("W", bound=CustomObject)


class CustomResourcePage(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """One page of a list."""

    items: tuple[M, ...]
    resource_version: str = ""
    """Where a watch that goes on from this list begins."""
    continue_token: str = ""
    """What to ask for the next page with; empty on the last one."""
    refused: tuple[WireError, ...] = ()
    """One for each object that could not be read and is therefore missing from *items*."""


class UnreadCustomList(msgspec.Struct, frozen=True, gc=False):
    """A list whose objects have not been looked at yet."""

    kind: str | None = None
    metadata: ListMeta = ListMeta()
    items: list[Raw] | None = None


_PAGE: Final = msgspec.json.Decoder(UnreadCustomList)


class CustomResourceReader(Generic[W, M]):
    """Reads objects of one kind, alone and in lists."""

    def __init__(self, kind: str, decoder: msgspec.json.Decoder[W], limit: int, convert: Callable[[W], M]) -> None:
        """Read what *decoder* makes of at most *limit* bytes; *convert* raises a ValueError that says what is wrong."""
        self.kind = kind
        self.limit = limit
        self._decoder = decoder
        self._convert = convert

    def one(self, data: bytes | Raw) -> M:
        """Read one object."""
        size = memoryview(data).nbytes
        if size > self.limit:
            raise self._refusal(f"it has {size} bytes, more than the {self.limit} one may have")
        try:
            found = self._decoder.decode(data)
        except (ValueError, RecursionError) as error:
            raise self._refusal(f"{error}; check who wrote it") from error
        if found.kind and found.kind != self.kind:
            raise self._refusal(f"this is a {found.kind:.80}; ask for {self.kind.lower()}")
        try:
            return self._convert(found)
        except NothingSaidError:
            raise
        except WireError as error:
            raise self._refusal(error.problem, found.metadata.name) from error
        except ValueError as error:
            raise self._refusal(str(error), found.metadata.name) from error

    def _refusal(self, problem: str, name: str = "") -> WireError:
        # Whatever is quoted from the object: it stays on one line.
        return WireError(self.kind, " ".join(problem.split()), " ".join(f"{name:.80}".split()))

    def many(self, data: bytes) -> CustomResourcePage[M]:
        """Read a list; one object that cannot be read does not take the others with it."""
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
                # A new one, because the one that was raised remembers all that was received.
                refused.append(WireError(*error.args))
        return CustomResourcePage(
            items=tuple(items),
            resource_version=page.metadata.resource_version,
            continue_token=page.metadata.continue_token or "",
            refused=tuple(refused),
        )


def object_name(digest: Digest) -> str:
    """Return what the ImageLayers of a manifest is called: names of objects have no colon."""
    return digest.replace(":", "-", 1)


def digest_in(name: str) -> Digest:
    """Return the digest that an ImageLayers is called by; ValueError when its name is none."""
    if not name.startswith(_PREFIX):
        raise ValueError("its name is not sha256- and 64 lower-case hexadecimal digits")
    try:
        return parse_digest(f"sha256:{name.removeprefix(_PREFIX)}")
    except DigestError as error:
        raise ValueError("its name is not sha256- and 64 lower-case hexadecimal digits") from error
