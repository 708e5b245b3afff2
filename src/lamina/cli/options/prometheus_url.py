"""``--prometheus URL``: the address of a Prometheus server with the usage of nodes."""

from lamina.clients.prometheus.server import checked_url
from lamina.model.errors import InputError
from lamina.model.plain import shown
from lamina.services.informers.usage.usage_settings import PrometheusEntry


def prometheus(url: str) -> PrometheusEntry:
    """Return the server at *url*. Raises InputError; the message does not repeat a password."""
    try:
        return PrometheusEntry(url=checked_url(url))
    except ValueError as error:
        raise InputError.one("--prometheus", _wrong(url, str(error))) from None


def _wrong(url: str, told: str) -> str:
    if "@" in url:
        return "contains a user or a password; set them beside `url` in a file, as docs/scheduling-agents-data.md shows"
    if told.startswith("is not a usable URL"):
        told = "is not a usable URL; write it as http://prometheus.monitoring:9090"
    return f"{shown(url)} {told}"
