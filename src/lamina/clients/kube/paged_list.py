"""
A list, page by page, for servers that do not stream it.

The pages are asked for without a version. With ``resourceVersion=0``, which is cheaper for the server, its cache
ignores the limit (apiserver, storage/cacher: computeListLimit) and 150,000 pods would come as one answer of 700 MB.
Without it every server honours the limit, and what it answers is never older than what we have seen.

A page that is too long to be read is asked for again with fewer objects. Everything in the house that lists objects does it
here: `list_objects` for objects that are read one by one, `list_pages` where the version of the list counts.
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
"""Objects of a page: client-go's number; some 2.5 MB of pods, read in a few milliseconds."""
SMALLEST_PAGE: Final = 8
"""Eight objects of the largest size that etcd takes fit into an answer."""
PATIENCE: Final = 60.0
"""Seconds for a page: an API server gives up after as many."""


class PageMeta(msgspec.Struct, frozen=True, rename="camel"):
    """``metadata`` of a list."""

    resource_version: str | None = None
    continue_token: str | None = msgspec.field(default=None, name="continue")


class RawListPage(msgspec.Struct, frozen=True):
    """One page; its objects are not read yet."""

    kind: str | None = None
    metadata: PageMeta = PageMeta()
    items: list[Raw] | None = None


class ListClient(Protocol):
    """What is needed of the client."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        limit: int = RESPONSE_LIMIT,
    ) -> bytes:
        """Ask once; return the body or raise."""
        ...


_PAGE: Final = msgspec.json.Decoder(RawListPage)


async def list_pages(
    client: ListClient, path: str, selectors: Mapping[str, str], size: int = PAGE
) -> AsyncIterator[RawListPage]:
    """
    Yield the pages of a list; all show the state of one moment, whose version each of them carries.

    A list that takes longer than the server keeps its moment ends with `ApiError.expired`.
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
    Yield the objects of a list, read by *decode*.

    An object that cannot be read does not take the others with it: it is left out, and *refused* says why. One that says
    nothing yet is left out, too.
    """
    async for page in list_pages(client, path, selectors or {}, size):
        for data in page.items or ():
            try:
                item = decode(bytes(data))
            except NothingSaidError:
                continue
            except WireError as error:
                if refused is not None:
                    # A new one, because the one that was raised remembers all that was received.
                    refused.append(WireError(*error.args))
                continue
            yield item


async def current_version(client: ListClient, path: str, selectors: Mapping[str, str]) -> str:
    """Ask how far the server's history has come, by a list of one object."""
    query = {**selectors, "limit": "1"}
    return _read(path, await client.request("GET", path, query=query)).metadata.resource_version or ""


def _read(path: str, body: bytes) -> RawListPage:
    what = f"GET {path}"
    try:
        page = _PAGE.decode(body)
    except (ValueError, RecursionError) as error:
        problem = f"the answer is no list ({error}); check that this is a Kubernetes API server"
        raise UnreachableError(what, problem) from None
    if page.kind == "Status" and (status := read_status(body)) is not None:
        raise from_status(what, status)
    return page
