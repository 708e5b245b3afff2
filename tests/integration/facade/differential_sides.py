"""The two servers of the comparison, behind one interface: the façade in this process, and a real API server."""

import http.client
import json
from typing import Any, Final, Protocol
from urllib.parse import quote

from lamina.simulator.facade.api_handler import ApiHandler
from lamina.simulator.facade.api_messages import ApiRequest, FacadeResponse
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.resource_types import ResourceTypes
from lamina.simulator.facade.system_objects import ensure_namespace, ensure_priority_classes
from testbed.bed import Testbed

SAFE: Final = "=&,!()*/%-._~:"
WATCH_WITHIN: Final = 20.0
"""Real seconds within which the last event of a watch must arrive."""


class OpenWatch(Protocol):
    """A watch that has begun."""

    def events(self, last: str) -> list[Any]:
        """Return all events, up to the one whose object has the annotation ``last`` with this value."""
        ...


class ApiSide(Protocol):
    """One server."""

    name: str

    def send(self, method: str, path: str, query: str, content_type: str, body: Any) -> tuple[int, Any]:
        """Send a request; return the status and the decoded body."""
        ...

    def watch(self, path: str, query: str) -> OpenWatch | tuple[int, Any]:
        """Begin a watch; return it, or the status and body of a refusal."""
        ...


def encoded_query(query: str) -> str:
    """Return a query string with its special characters escaped."""
    return quote(query, safe=SAFE)


# -- façade ------------------------------------------------------------------------------------------------------------


class StillCluster:
    """A cluster that does not react: it takes every input and does nothing. Implements `ClusterInputs`."""

    def __getattr__(self, name: str) -> Any:
        """Return a function that does nothing."""
        return lambda *_: None


class FacadeWatch:
    """A watch of the façade; its lines are complete at once."""

    def __init__(self) -> None:
        """Start without lines."""
        self.lines: list[bytes] = []

    def add(self, data: bytes) -> None:
        """Take complete lines."""
        self.lines += data.splitlines()

    def events(self, last: str) -> list[Any]:
        """Return all events up to the last one."""
        return _until_last([json.loads(line) for line in self.lines], last)


class FacadeSide:
    """The façade in front of a cluster that does not react."""

    name = "façade"

    def __init__(self) -> None:
        """Start with the namespace ``default``."""
        self.state = ApiState(ResourceTypes(), lambda: 0.0, StillCluster(), epoch=1_800_000_000.0)
        self.handler = ApiHandler(self.state)
        ensure_namespace(self.state, "default")
        ensure_priority_classes(self.state)

    def send(self, method: str, path: str, query: str, content_type: str, body: Any) -> tuple[int, Any]:
        """Send a request; return the status and the decoded body."""
        answer = self.handler.handle(self._request(method, path, query, content_type, body))
        assert isinstance(answer, FacadeResponse), answer
        return answer.status, json.loads(answer.body)

    def watch(self, path: str, query: str) -> OpenWatch | tuple[int, Any]:
        """Begin a watch."""
        answer = self.handler.handle(self._request("GET", path, query, "application/json", None))
        if isinstance(answer, FacadeResponse):
            return answer.status, json.loads(answer.body)
        found = FacadeWatch()
        answer.open(found.add)
        return found

    def _request(self, method: str, path: str, query: str, content_type: str, body: Any) -> ApiRequest:
        headers = {"accept": "application/json", "content-type": content_type, "user-agent": "differential"}
        data = b"" if body is None else json.dumps(body).encode()
        return ApiRequest(method, path, encoded_query(query), headers, data)


# -- real API server ---------------------------------------------------------------------------------------------------


class RealWatch:
    """A watch of the real server: a response whose body is still open."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        """Read from *response*."""
        self._connection = connection
        self._response = response

    def events(self, last: str) -> list[Any]:
        """Return all events up to the last one; what arrived so far if it does not come in time."""
        found: list[Any] = []
        try:
            while line := self._response.readline():
                found.append(json.loads(line))
                if _is_last(found[-1], last):
                    break
        except TimeoutError:
            found.append({"type": "TIMEOUT", "object": {"metadata": {}}})
        finally:
            self._connection.close()
        return found


class RealSide:
    """A real API server."""

    name = "real"

    def __init__(self, bed: Testbed) -> None:
        """Use one connection for requests and a new one for each watch."""
        self._requests = bed.site.requests().within(WATCH_WITHIN)
        self._connection = self._requests._connect()

    def send(self, method: str, path: str, query: str, content_type: str, body: Any) -> tuple[int, Any]:
        """Send a request; return the status and the decoded body."""
        data = None if body is None else json.dumps(body).encode()
        response = self._ask(self._connection, method, path, query, content_type, data)
        return response.status, _decoded(response.read())

    def watch(self, path: str, query: str) -> OpenWatch | tuple[int, Any]:
        """Begin a watch."""
        connection = self._requests._connect()
        response = self._ask(connection, "GET", path, query, "application/json", None)
        if response.status != 200:
            refusal = response.status, _decoded(response.read())
            connection.close()
            return refusal
        return RealWatch(connection, response)

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        query: str,
        content_type: str,
        data: bytes | None,
    ) -> http.client.HTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": "differential"}
        if data is not None:
            headers["Content-Type"] = content_type
        target = f"{path}?{encoded_query(query)}" if query else path
        connection.request(method, target, body=data, headers=headers)
        return connection.getresponse()

    def close(self) -> None:
        """Close all connections."""
        self._requests.close()


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return {"text": body.decode(errors="replace")}


def _is_last(event: Any, last: str) -> bool:
    metadata = event["object"].get("metadata", {})
    return bool(metadata.get("name", "").endswith("zz-last") and metadata.get("annotations", {}).get("last") == last)


def _until_last(events: list[Any], last: str) -> list[Any]:
    for index, event in enumerate(events):
        if _is_last(event, last):
            return events[: index + 1]
    return [*events, {"type": "TIMEOUT", "object": {"metadata": {}}}]
