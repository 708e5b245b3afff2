"""What a handler gets to see of a request."""

import pytest

from lamina.serving.request import HttpRequest, RequestHeaders
from lamina.serving.response import HttpResponse, header_lines
from tests.unit.serving.visiting import get, post, serving


async def seen(*requests: bytes) -> list[HttpRequest]:
    """Send requests and return what the handler got."""
    found: list[HttpRequest] = []

    def handler(request: HttpRequest) -> HttpResponse:
        found.append(request)
        return HttpResponse()

    async with serving(handler=handler) as server, server.call() as caller:
        for data in requests:
            assert 200 == (await caller.ask(data)).status
    return found


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_every_method_reaches_the_handler(method):
    body = b"" if method == "GET" else b"body"
    data = get("/a", method=method) if method == "GET" else post("/a", body).replace(b"POST", method.encode())
    (request,) = await seen(data)

    assert (method, "/a", body) == (request.method, request.path, bytes(request.body))


async def test_a_delete_needs_no_body():
    (request,) = await seen(get("/a", method="DELETE"))

    assert ("DELETE", b"") == (request.method, request.body)


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        pytest.param("/a/b", "/a/b", "", id="no query"),
        pytest.param("/a?watch=1&x=y", "/a", "watch=1&x=y", id="query"),
        pytest.param("/a?", "/a", "", id="empty query"),
        pytest.param("/a%2Fb%20c?labelSelector=a%3Db%2Cc", "/a%2Fb%20c", "labelSelector=a%3Db%2Cc", id="encoded"),
        pytest.param("/a?b=c?d", "/a", "b=c?d", id="a question mark in the query"),
        pytest.param("/a?b#c?d", "/a", "b", id="fragment"),
        pytest.param("http://x:1/a?b", "/a", "b", id="absolute form"),
    ],
)
async def test_path_and_query_are_left_as_they_were_sent(target, path, query):
    (request,) = await seen(get(target))

    assert (path, query) == (request.path, request.query)


async def test_headers_have_names_in_lower_case_and_repeated_ones_are_joined():
    (request,) = await seen(get("/a", "ACCEPT: application/json", "X-One: 1", "accept:  text/plain  ", "X-Empty:"))

    assert {
        "host": "x",
        "accept": "application/json, text/plain",
        "x-one": "1",
        "x-empty": "",
    } == dict(request.headers)
    assert (None, 4, True) == (request.headers.get("X-One"), len(request.headers), "x-one" in request.headers)


async def test_headers_belong_to_their_request():
    first, second = await seen(get("/a", "X: 1"), get("/b"))

    assert ("1", None) == (first.headers.get("x"), second.headers.get("x"))


async def test_the_address_of_the_client_is_known():
    (request,) = await seen(get("/a"))

    assert "127.0.0.1" == request.peer


def test_a_request_can_be_made_without_a_connection():
    request = HttpRequest("GET", "/a", headers={"host": "x"})

    assert ("", b"", "", "x") == (request.query, request.body, request.peer, request.headers["host"])


def test_bytes_beyond_ascii_are_kept_in_a_header():
    assert {"a": "\xe9"} == dict(RequestHeaders(b"GET / HTTP/1.1\r\nA: \xe9\r\n\r\n"))


# ----------------------------------------------------------------------------------------------- headers of a response


async def test_a_response_can_have_headers_of_its_own():
    def handler(_: HttpRequest) -> HttpResponse:
        return HttpResponse(headers=(("X-One", "1"), ("Warning", '299 - "old"')))

    async with serving(handler=handler) as server, server.call() as caller:
        answer = await caller.ask(get("/a"))

    assert ("1", '299 - "old"') == (answer.headers["x-one"], answer.headers["warning"])


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: b", "a\nb", "a\rb"])
async def test_a_line_break_in_a_header_never_reaches_a_client(value):
    def handler(_: HttpRequest) -> HttpResponse:
        return HttpResponse(headers=(("X-One", value),))

    async with serving(handler=handler) as server, server.call() as caller:
        answer = await caller.ask(get("/a"))

    assert (500, False) == (answer.status, "x-one" in answer.headers)
    with pytest.raises(ValueError, match="line break"):
        header_lines((("X-One", value),))
