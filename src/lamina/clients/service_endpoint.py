"""Reads one endpoint of a Lamina service over plain HTTP, with limits on time and size."""

import os
from typing import Final

import aiohttp

from lamina.model.errors import LaminaError

TIMEOUT: Final = 10.0


class EndpointError(LaminaError):
    """The endpoint did not answer, or its answer is too long."""


async def read_endpoint(url: str, limit: int, timeout: float = TIMEOUT) -> tuple[int, bytes]:
    """Return status and body of GET *url*. Raises EndpointError; redirects are not followed."""
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout)) as session,
            session.get(url, allow_redirects=False) as response,
        ):
            body = b""
            while len(body) <= limit and (piece := await response.content.read(limit)):
                body += piece
            if len(body) > limit:
                raise EndpointError(f"the answer has more than {limit} bytes")
            return response.status, body
    except aiohttp.ClientConnectorError as error:
        raise EndpointError(os.strerror(error.errno) if error.errno else str(error)) from error
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise EndpointError(str(error) or "no answer") from error
