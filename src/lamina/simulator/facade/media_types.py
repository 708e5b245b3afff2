"""
The Accept header of a request: which form of an answer a client asks for.

Kubernetes clients ask for another kind than the stored one with parameters of the media type:
``application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json``.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

JSON: Final = "application/json"
MAX_ACCEPT: Final = 4096
"""Characters of an Accept header that are read."""

_JSON_RANGES: Final = frozenset({JSON, "application/*", "*/*"})


class MediaType(msgspec.Struct, frozen=True):
    """One accepted media type, in lower case, with its parameters except ``q``."""

    name: str
    parameters: Mapping[str, str]
    quality: float = 1.0

    @property
    def is_json(self) -> bool:
        """Whether JSON satisfies it."""
        return self.name in _JSON_RANGES

    def asks_for(self, kind: str, group: str, version: str) -> bool:
        """Whether it asks for an answer that is converted to *kind*."""
        wanted = self.parameters
        return (
            self.is_json
            and wanted.get("as") == kind
            and wanted.get("g", group) == group
            and wanted.get("v", version) == version
        )


def parse_accept(accept: str) -> list[MediaType]:
    """Return the media types of an Accept header, the most wanted first; JSON if the header is empty."""
    found = [parsed for piece in accept[:MAX_ACCEPT].split(",") if (parsed := _parsed(piece)) is not None]
    if not found:
        return [MediaType(JSON, {})]
    return sorted((each for each in found if each.quality > 0), key=lambda each: -each.quality)


def _parsed(piece: str) -> MediaType | None:
    name, *rest = [part.strip() for part in piece.split(";")]
    if not name:
        return None
    parameters: dict[str, str] = {}
    quality = 1.0
    for part in rest:
        key, _, value = part.partition("=")
        key, value = key.strip().lower(), value.strip().strip('"')
        if key == "q":
            try:
                quality = float(value)
            except ValueError:
                quality = 1.0
        elif key:
            parameters[key] = value
    return MediaType(name.lower(), parameters, quality)
