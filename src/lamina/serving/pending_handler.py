"""A handler that is awaited: its response reaches the connection once, or never if it was cancelled before."""

import asyncio
from collections.abc import Awaitable, Callable

from lamina.serving.request_dispatch import HandlerResponse, awaited_response


class PendingHandler:
    """The pending result of one handler."""

    def __init__(
        self,
        result: Awaitable[HandlerResponse],
        path: str,
        pending: set[asyncio.Future[HandlerResponse]],
        done: Callable[[HandlerResponse], None],
    ) -> None:
        """Call *done* with the response, in a later turn of the event loop; be in *pending* until the handler ends."""
        self._path, self._pending, self._done = path, pending, done
        self._cancelled = False
        self._future = asyncio.ensure_future(result)
        pending.add(self._future)
        self._future.add_done_callback(self._ended)

    def cancel(self) -> None:
        """Cancel the handler; its response is not needed any more."""
        self._cancelled = True
        self._future.cancel()

    def _ended(self, future: asyncio.Future[HandlerResponse]) -> None:
        self._pending.discard(future)
        if not self._cancelled:
            self._done(awaited_response(future, self._path))
        elif not future.cancelled():
            awaited_response(future, self._path)  # logs its failure, if it is one
