"""
Paged lists, for servers that do not stream lists and for one-time reads.

Pages are requested without a resourceVersion. With ``resourceVersion=0``, which is cheaper, the server's cache ignores
the limit (apiserver, storage/cacher: computeListLimit): 150,000 pods would come as one response of 700 MB. Without it,
every server honours the limit and returns a state that is not older than any we have seen.

A page that exceeds the response limit is requested again with fewer objects. All of Lamina lists objects with this
module: `list_objects` decodes them one by one, `list_pages` also gives the version of the list.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, Protocol, TypeVar

import msgspec
from msgspec import Raw

from lamina.clients.kube.errors import AnswerTooLongError, UnreachableError, from_status, read_status
from lamina.clients.kube.transport import RESPONSE_LIMIT
from lamina.wire.errors import NothingSaidError, WireError

T = TypeVar("T")

PAGE: Final = 500
"""Objects of a page: client-go's default; about 2.5 MB of pods, decoded in a few milliseconds."""
SMALLEST_PAGE: Final = 8
"""Eight objects of the largest size that etcd accepts fit into one response."""
PATIENCE: Final = 60.0
"""Seconds for a page; an API server's own limit is the same."""


class PageMeta(msgspec.Struct, frozen=True, rename="camel"):
    """``metadata`` of a list."""

    resource_version: str | None = None
    continue_token: str | None = msgspec.field(default=None, name="continue")


class RawListPage(msgspec.Struct, frozen=True):
    """One page with undecoded objects."""

    kind: str | None = None
    metadata: PageMeta = PageMeta()
    items: list[Raw] | None = None


class ListClient(Protocol):
    """The part of `KubeClient` that lists need."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        limit: int = RESPONSE_LIMIT,
    ) -> bytes:
        """Send one request; return the body or raise."""
        ...


_PAGE: Final = msgspec.json.Decoder(RawListPage)


async def list_pages(
    client: ListClient, path: str, selectors: Mapping[str, str], size: int = PAGE
) -> AsyncIterator[RawListPage]:
    """
    Yield the pages of a list. All pages show the same state and carry its version.

    Raises ApiError with `expired` if the list takes longer than the server keeps that state.
    """
    token = ""
    while True:
        query = {**selectors, "limit": str(size)}
        if token:
            query["continue"] = token
        try:
            page = _read(path, await client.request("GET", path, query=query, timeout=PATIENCE))
        except AnswerTooLongError:
            if size <= SMALLEST_PAGE:
                raise
            size = max(SMALLEST_PAGE, size // 4)
            continue
        yield page
        token = page.metadata.continue_token or ""
        if not token:
            return


async def list_objects(
    client: ListClient,
    path: str,
    decode: Callable[[bytes], T],
    *,
    selectors: Mapping[str, str] | None = None,
    size: int = PAGE,
    refused: list[WireError] | None = None,
) -> AsyncIterator[T]:
    """
    Yield the objects of a list, decoded by *decode*.

    An object that raises WireError is skipped, and its error is appended to *refused*. An object that its controller
    has not filled in yet (NothingSaidError) is skipped too.
    """
    async for page in list_pages(client, path, selectors or {}, size):
        for data in page.items or ():
            try:
                item = decode(bytes(data))
            except NothingSaidError:
                continue
            except WireError as error:
                if refused is not None:
                    # A copy: the raised error refers to the whole response through its traceback.
                    refused.append(WireError(*error.args))
                continue
            yield item


async def current_version(client: ListClient, path: str, selectors: Mapping[str, str]) -> str:
    """Return the server's current version of a resource, from a list of one object."""
    query = {**selectors, "limit": "1"}
    return _read(path, await client.request("GET", path, query=query)).metadata.resource_version or ""


def _read(path: str, body: bytes) -> RawListPage:
    what = f"GET {path}"
    try:
        page = _PAGE.decode(body)
    except (ValueError, RecursionError) as error:
        problem = f"the response is not a list ({error}); check that this is a Kubernetes API server"
        raise UnreachableError(what, problem) from None
    if page.kind == "Status" and (status := read_status(body)) is not None:
        raise from_status(what, status)
    return page
