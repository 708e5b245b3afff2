"""Scrapes of a scheduler's metrics over HTTP or HTTPS on loopback."""

import ssl
from collections.abc import Collection
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp

from lamina.apiserver.settling.metric_text import LARGEST, MetricValues
from lamina.model.errors import InputError
from lamina.serving.server_limits import is_loopback

SCRAPE_SECONDS = 10.0


class MetricsSource(Protocol):
    """Returns the metrics of a scheduler."""

    async def scrape(self) -> MetricValues | None:
        """Return the current values; None if the scheduler does not answer."""
        ...


class MetricsClient:
    """Scrapes one address. The certificate of the scheduler is its own, so only loopback is accepted."""

    def __init__(self, url: str, names: Collection[str]) -> None:
        """Read the metrics *names* at *url*. Raises InputError unless the host is loopback."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not is_loopback(parts.hostname or ""):
            raise InputError.one(url, "is no address of metrics on this machine; try http://127.0.0.1:PORT/metrics")
        self._url = url
        self._names = names
        self._session: aiohttp.ClientSession | None = None

    async def scrape(self) -> MetricValues | None:
        """Return the current values; None if the scheduler does not answer."""
        if self._session is None:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=context), timeout=aiohttp.ClientTimeout(total=SCRAPE_SECONDS)
            )
        try:
            async with self._session.get(self._url) as response:
                if response.status != 200:
                    return None
                body = bytearray()
                async for piece in response.content.iter_any():
                    body += piece
                    if len(body) > LARGEST:
                        return None
        except (TimeoutError, aiohttp.ClientError, OSError):
            return None
        return MetricValues(body.decode("utf-8", "replace"), self._names)

    async def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None
