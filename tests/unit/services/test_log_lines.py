"""What the service says: one line for each message, whatever is in it."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.services.log_lines import JsonFormatter, TextFormatter, Verbosity, set_up, verbose
from lamina.services.scheduler import logs

HOSTILE = st.text(st.one_of(st.characters(), st.sampled_from("\n\r\t\x00\x1b\x85\u2028\ud800\"'= {}%")), max_size=30)
VALUES = st.one_of(HOSTILE, st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False))


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Leave logging as it was found."""
    root = logging.getLogger("lamina")
    before = root.handlers[:], root.propagate, root.level, Verbosity.level
    yield
    root.handlers[:], root.propagate, Verbosity.level = before[0], before[1], before[3]
    root.setLevel(before[2])


def a_record(message: str, *args: object, error: BaseException | None = None, **fields: object) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("lamina.x", logging.INFO, "x.py", 1, message, args, info)
    record.fields = fields
    return record


def raised(words: str) -> BaseException:
    try:
        raise ValueError(words)
    except ValueError as error:
        return error


# -------------------------------------------------------------------------------------------------------------- one line


@given(HOSTILE, st.dictionaries(st.sampled_from(["pod", "node", "err"]), VALUES, max_size=3))
@settings(max_examples=60)
def test_json_is_one_line_that_says_what_was_said(message, fields):
    text = JsonFormatter().format(a_record("%s", message, **fields))

    assert "\n" not in text
    assert "\r" not in text
    said = json.loads(text)
    assert message == said["msg"]
    assert fields == {name: said[name] for name in fields}


@given(HOSTILE, st.dictionaries(st.sampled_from(["pod", "node", "err"]), VALUES, max_size=3))
@settings(max_examples=60)
def test_text_has_no_line_feed_inside(message, fields):
    assert "\n" not in TextFormatter().format(a_record("%s", message, **fields))


@pytest.mark.parametrize("break_", ["\r", "\x0b", "\x0c", "\x1b[2K", "\x85", "\u2028"])
@pytest.mark.parametrize("where", ["message", "field"])
def test_text_has_no_other_line_break_inside_either(break_, where):
    hostile = f"a{break_}b"
    record = a_record("%s", hostile) if where == "message" else a_record("said", err=hostile)
    text = TextFormatter().format(record)

    assert 1 == len(text.splitlines())
    assert "\x1b" not in text


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have_do_not_break_it(number):
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    json.loads(JsonFormatter().format(a_record("said", seconds=number)), parse_constant=refuse)


@pytest.mark.parametrize("form", [TextFormatter(), JsonFormatter()], ids=["text", "json"])
def test_an_exception_stands_on_the_line_of_its_message(form):
    text = form.format(a_record("it broke", error=raised("first\nsecond")))

    assert 1 == len(text.splitlines())
    assert "it broke" in text
    assert "ValueError: first" in text


def test_text_is_for_people():
    record = a_record("Successfully bound pod to node", pod="shop/web-0", err="no room", empty="")
    record.created = 0.0625

    assert (
        '00:00:00.062 I Successfully bound pod to node pod=shop/web-0 err="no room" empty=""'
        == TextFormatter().format(record)
    )


def test_json_is_for_machines():
    record = a_record("Successfully bound pod to node", pod="shop/web-0", attempt=2)
    record.created = 1.2345

    assert {
        "ts": 1.234,
        "level": "info",
        "msg": "Successfully bound pod to node",
        "pod": "shop/web-0",
        "attempt": 2,
    } == json.loads(JsonFormatter().format(record))


def test_what_others_say_beside_a_message_is_said_too():
    record = a_record("leading")
    record.lease = "lamina-scheduler"

    assert "lamina-scheduler" == json.loads(JsonFormatter().format(record))["lease"]
    assert TextFormatter().format(record).endswith("leading lease=lamina-scheduler")


def test_a_field_never_takes_the_place_of_the_message():
    assert "said" == json.loads(JsonFormatter().format(a_record("said", msg="something else")))["msg"]


@pytest.mark.parametrize(
    ("level", "word"),
    [(logging.DEBUG, "debug"), (logging.WARNING, "warning"), (logging.ERROR, "error"), (logging.CRITICAL, "critical")],
)
def test_levels_are_said_in_words(level, word):
    record = a_record("said")
    record.levelno, record.levelname = level, logging.getLevelName(level)

    assert word == json.loads(JsonFormatter().format(record))["level"]


# ------------------------------------------------------------------------------------------------------------ verbosity


@pytest.mark.parametrize(
    ("verbosity", "wanted"),
    [
        (0, {"bindings": False, "attempts": False, "scores": False, "debug": False}),
        (2, {"bindings": True, "attempts": False, "scores": False, "debug": False}),
        (3, {"bindings": True, "attempts": True, "scores": False, "debug": False}),
        (4, {"bindings": True, "attempts": True, "scores": False, "debug": True}),
        (10, {"bindings": True, "attempts": True, "scores": True, "debug": True}),
    ],
)
def test_verbosity_says_as_much_as_kube_schedulers(verbosity, wanted):
    stream = io.StringIO()
    set_up(verbosity, "json", stream)
    logging.getLogger("lamina.services").debug("a detail")

    assert wanted == {
        "bindings": verbose(logs.BINDINGS),
        "attempts": verbose(logs.ATTEMPTS),
        "scores": verbose(logs.SCORES),
        "debug": "a detail" in stream.getvalue(),
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_setting_up_twice_says_everything_once(form):
    stream = io.StringIO()
    set_up(0, form, stream)
    set_up(0, form, stream)
    logging.getLogger("lamina.anywhere").warning("said once")

    assert 1 == stream.getvalue().count("said once")


def test_a_lone_surrogate_is_no_reason_to_fall_silent():
    buffer = io.BytesIO()
    # As standard error is opened.
    stream = io.TextIOWrapper(buffer, encoding="utf-8", errors="backslashreplace", write_through=True)
    set_up(0, "json", stream)
    logging.getLogger("lamina.anywhere").warning("odd \ud800")

    assert "odd \ud800" == json.loads(buffer.getvalue())["msg"]


@pytest.mark.parametrize("name", ["aiohttp.server", "asyncio"])
def test_what_the_libraries_complain_about_is_said_in_the_same_form(name):
    stream = io.StringIO()
    set_up(0, "json", stream)
    logging.getLogger(name).error("trouble")

    assert "trouble" in stream.getvalue()
