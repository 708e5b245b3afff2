"""What an API server's refusals become."""

import copy
import json
import pickle

import pytest

from lamina.clients.kube.errors import (
    MESSAGE_LIMIT,
    AnswerTooLongError,
    ApiError,
    SilenceError,
    UnreachableError,
    from_response,
    from_status,
    one_line,
    read_status,
)
from lamina.model.errors import LaminaError
from tests.unit.clients.kube.model_cluster import status

WHAT = "GET /api/v1/pods"


def refusal(body: dict[str, object] | bytes, code: int = 403, headers: dict[str, str] | None = None) -> ApiError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return from_response(WHAT, code, "Phrase", headers or {}, data)


def test_a_refusal_is_one_line_with_what_was_asked_and_what_was_said():
    error = refusal(status(403, "Forbidden", 'pods is forbidden: User "lamina"\ncannot list'))

    assert 'GET /api/v1/pods: 403 Forbidden: pods is forbidden: User "lamina" cannot list' == str(error)
    assert (403, "Forbidden") == (error.status, error.reason)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b"no healthy upstream", "GET /api/v1/pods: 503 Phrase: no healthy upstream", id="plain text"),
        pytest.param(b"", "GET /api/v1/pods: 503 Phrase", id="nothing"),
        pytest.param(b'{"kind":"Pod"}', 'GET /api/v1/pods: 503 Phrase: {"kind":"Pod"}', id="another object"),
        pytest.param(b'{"kind":"Status","code":"x"}', None, id="a Status that is none"),
        pytest.param(b"\xff\xfe\x00", None, id="no text at all"),
        pytest.param(b"[" * 50_000, None, id="nested without end"),
    ],
)
def test_a_refusal_without_a_status_is_told_by_its_code(body, expected):
    error = refusal(body, 503)

    assert 503 == error.status
    assert "\n" not in str(error)
    assert expected is None or expected == str(error)


def test_words_of_a_stranger_are_cut_and_cannot_draw_on_a_terminal():
    error = refusal(status(500, "Internal\x1b[31mError", "x\x00y\r\n" + "z" * 10_000))

    assert str(error).isprintable()
    assert MESSAGE_LIMIT >= len(error.message)
    assert error.message.startswith("x y z")


@pytest.mark.parametrize(
    ("headers", "details", "expected"),
    [
        pytest.param({"Retry-After": "7"}, {}, 7.0, id="header"),
        pytest.param({}, {"retryAfterSeconds": 3}, 3.0, id="in the Status"),
        pytest.param({"Retry-After": "7"}, {"retryAfterSeconds": 3}, 3.0, id="both: the Status"),
        pytest.param({"Retry-After": "7"}, {"retryAfterSeconds": 0}, 7.0, id="none in the Status"),
        pytest.param({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, {}, None, id="a date"),
        pytest.param({"Retry-After": "-1"}, {}, None, id="negative"),
        pytest.param({"Retry-After": "9" * 400}, {}, None, id="no number of seconds"),
        pytest.param({}, {}, None, id="nothing"),
    ],
)
def test_the_time_that_a_server_asks_for_is_kept(headers, details, expected):
    assert expected == refusal(status(429, "TooManyRequests", **details), 429, headers).retry_after


@pytest.mark.parametrize(
    ("body", "expired", "too_large"),
    [
        pytest.param(status(410, "Expired"), True, False, id="expired"),
        pytest.param(status(410, "Gone"), True, False, id="gone"),
        pytest.param(status(410), True, False, id="410 without a reason"),
        pytest.param(
            status(504, "Timeout", causes=[{"reason": "ResourceVersionTooLarge", "message": "Too large"}]),
            False,
            True,
            id="too large",
        ),
        pytest.param(
            status(504, "Timeout", "Too large resource version: 9, current: 5"), False, True, id="too large in words"
        ),
        pytest.param(status(504, "Timeout"), False, False, id="an ordinary timeout"),
        pytest.param(
            status(400, "BadRequest", "Too large resource version: not a number"), False, False, id="other words"
        ),
        pytest.param(status(500, "InternalError", details=None), False, False, id="something else"),
    ],
)
def test_what_only_a_new_list_helps_against_is_recognised(body, expired, too_large):
    error = refusal(body, body["code"])

    assert (expired, too_large) == (error.expired, error.too_large)


def test_a_status_without_a_code_counts_as_the_answer_it_came_in():
    found = read_status(b'{"kind":"Status","message":null,"details":null}')

    assert found is not None
    assert 418 == from_status(WHAT, found, 418).status


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ApiError(WHAT, 409, "Conflict", "changed", 1.0, ("x",)), id="refusal"),
        pytest.param(UnreachableError(WHAT, "no connection"), id="unreachable"),
        pytest.param(SilenceError(WHAT, "nothing came"), id="silence"),
        pytest.param(AnswerTooLongError(WHAT, "too long"), id="too long"),
    ],
)
def test_an_error_can_be_copied_and_ends_a_command_with_1(error):
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (type(error), str(error), error.args) == (type(twin), str(twin), twin.args)
    assert isinstance(error, LaminaError)
    assert 1 == error.exit_code


def test_one_line_of_nothing_is_nothing():
    assert "" == one_line(" \n\t ")
