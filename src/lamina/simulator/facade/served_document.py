"""Documents that describe the API itself and do not come from the store: encoded, with their content type."""

from typing import Any

import msgspec

from lamina.simulator.facade.media_types import JSON


class ServedDocument(msgspec.Struct, frozen=True):
    """The body of a response with status 200."""

    content: bytes
    content_type: str = JSON


def json_document(body: Any, content_type: str = JSON) -> ServedDocument:
    """Return *body* as JSON."""
    return ServedDocument(msgspec.json.encode(body), content_type)
