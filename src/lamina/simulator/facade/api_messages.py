"""Requests and responses of the façade, without a transport; bodies and query parameters, decoded."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from lamina.model.errors import InputError
from lamina.model.yaml_document import read_yaml_all
from lamina.simulator.facade.api_errors import StatusError, bad_request, too_large, unsupported_media_type
from lamina.simulator.facade.kube_object import KubeObject
from lamina.simulator.facade.watches import Watch
from lamina.wire.errors import WireError
from lamina.wire.kube_protobuf.protobuf_decoder import decode_protobuf

JSON: Final = "application/json"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
YAML: Final = frozenset({"application/yaml", "application/x-yaml", "text/yaml", "application/apply-patch+yaml"})
LARGEST_BODY: Final = 3 * 1024 * 1024
"""Largest request body in bytes, as in the API server."""
MOST_PARAMETERS: Final = 64
DEEPEST: Final = 64
"""Most nested levels of a request body."""


class ApiRequest(msgspec.Struct, frozen=True):
    """One request of a client."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = {}
    """Names in lower case."""
    body: bytes = b""

    @property
    def accept(self) -> str:
        """The Accept header."""
        return self.headers.get("accept", "")

    @property
    def content_type(self) -> str:
        """The media type of the body, without parameters; JSON if the client names none."""
        return self.headers.get("content-type", JSON).partition(";")[0].strip().lower() or JSON

    def parameters(self) -> dict[str, str]:
        """Return the query parameters; of a repeated one, the first."""
        if not self.query:
            return {}
        try:
            pairs = parse_qsl(self.query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
        except ValueError as error:
            raise bad_request(f"the query string cannot be read: {error}") from error
        found: dict[str, str] = {}
        for name, value in pairs:
            found.setdefault(name, value)
        return found


class FacadeResponse(msgspec.Struct, frozen=True):
    """A complete response of the façade."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class WatchResponse(msgspec.Struct, frozen=True):
    """A response that stays open: the transport calls *open* with a function that sends lines to the client."""

    open: Callable[[Callable[[bytes], object]], Watch]
    seconds: float
    """Real seconds after which the transport ends the stream."""


def json_response(found: object, status: int = 200) -> FacadeResponse:
    """Return a response with an object as JSON."""
    return FacadeResponse(status, msgspec.json.encode(found))


def error_response(error: StatusError) -> FacadeResponse:
    """Return the response for an error; with ``Retry-After`` if the client may repeat the request."""
    wait = (error.details or {}).get("retryAfterSeconds")
    headers = (("Retry-After", str(wait)),) if wait is not None else ()
    return FacadeResponse(error.code, msgspec.json.encode(error.status()), headers=headers)


def flag(parameters: Mapping[str, str], name: str) -> bool:
    """Return a query parameter that is on or off."""
    value = parameters.get(name)
    if value is None:
        return False
    if value.lower() in {"", "1", "t", "true"}:
        return True
    if value.lower() in {"0", "f", "false"}:
        return False
    raise bad_request(f"query parameter {name}: {value!r} is not a boolean; try true or false")


def number(parameters: Mapping[str, str], name: str) -> int | None:
    """Return a query parameter that is a whole number of at least 0; None if it is missing or empty."""
    value = parameters.get(name)
    if not value:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > 18:
        raise bad_request(f"query parameter {name}: {value!r} is not a whole number; try 0 or more")
    return int(value)


def decode_body(request: ApiRequest) -> Any:
    """Return the decoded body: JSON, YAML or Kubernetes protobuf. Raises StatusError."""
    if len(request.body) > LARGEST_BODY:
        raise too_large(f"Request entity too large: limit is {LARGEST_BODY}")
    content_type = request.content_type
    try:
        if content_type == PROTOBUF:
            found: Any = decode_protobuf(request.body)
        elif content_type in YAML:
            found = _yaml(request.body)
        elif content_type == JSON or content_type.endswith("+json"):
            found = msgspec.json.decode(request.body)
        else:
            raise unsupported_media_type(
                f"the body of the request was in an unknown format - accepted media types include: "
                f"{JSON}, application/yaml, {PROTOBUF}"
            )
    except (ValueError, RecursionError, InputError, WireError) as error:
        raise bad_request(f"the request body cannot be read as {content_type}: {str(error)[:300]}") from error
    _check_depth(found, DEEPEST)
    return found


def decode_object(request: ApiRequest) -> KubeObject:
    """Return the decoded body, which must be an object."""
    found = decode_body(request)
    if not isinstance(found, dict):
        raise bad_request(f"the request body is a JSON {type(found).__name__}, not an object with apiVersion and kind")
    return found


def _yaml(body: bytes) -> Any:
    documents = list(read_yaml_all(body.decode(), "request body"))
    if len(documents) != 1:
        raise bad_request(f"the request body has {len(documents)} YAML documents; send one")
    return documents[0].data


def _check_depth(value: Any, left: int) -> None:
    if left < 0:
        raise bad_request(f"the request body is nested deeper than {DEEPEST} levels")
    if isinstance(value, dict):
        for inner in value.values():
            if isinstance(inner, (dict, list)):
                _check_depth(inner, left - 1)
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, (dict, list)):
                _check_depth(inner, left - 1)
