"""Fields that hold the result of their parser, converted and checked by the type of what is written."""

from typing import Annotated

import msgspec
import pytest
from msgspec import inspect

from lamina.model.conversion import convert, mistakes_in, read
from lamina.model.duration import seconds
from lamina.model.errors import InputError
from lamina.model.yaml_document import read_yaml

Seconds = Annotated[float, msgspec.Meta(extra={"parses": seconds, "written": inspect.type_info(str | float)})]


class Window(msgspec.Struct, frozen=True):
    """A struct beside a parsed value in a union."""

    begin: Seconds
    end: Seconds


class Timetable(msgspec.Struct, frozen=True):
    """Parsed values in all places that a field can have."""

    at: Seconds = 0.0
    stops: tuple[Seconds, ...] = ()
    named: dict[str, Seconds] = {}
    either: Seconds | Window | None = None
    listed: tuple[str, ...] | dict[str, Seconds] = ()
    text: str = ""


def document(text):
    return read_yaml(text, "f.yaml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("at: 2m", Timetable(at=120.0), id="a field"),
        pytest.param("at: 3", Timetable(at=3.0), id="a number"),
        pytest.param("stops: [1s, 2m]", Timetable(stops=(1.0, 120.0)), id="items of a list"),
        pytest.param("named: {a: 1m, b: 2}", Timetable(named={"a": 60.0, "b": 2.0}), id="values of a mapping"),
        pytest.param("either: 1m", Timetable(either=60.0), id="a member of a union"),
        pytest.param("either: {begin: 1s, end: 1m}", Timetable(either=Window(1.0, 60.0)), id="a struct in a union"),
        pytest.param("either: null", Timetable(), id="nothing"),
        pytest.param("listed: [1m]", Timetable(listed=("1m",)), id="text that only another member would parse"),
        pytest.param("listed: {a: 1m}", Timetable(listed={"a": 60.0}), id="a mapping in a union"),
        pytest.param("{text: 1m, at: 1m}", Timetable(text="1m", at=60.0), id="other fields stay as written"),
    ],
)
def test_a_parsed_field_holds_the_result_of_its_parser(text, expected):
    assert expected == convert(document(text), Timetable)
    assert (expected, []) == read(document(text), Timetable)


def test_a_value_is_parsed_once():
    calls = []

    def parser(value):
        calls.append(value)
        return float(value)

    kind = Annotated[float, msgspec.Meta(extra={"parses": parser, "written": inspect.type_info(str)})]

    assert ([1.0, 2.0], []) == read(document("['1', '2']"), list[kind])
    assert ["1", "2"] == calls


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("at: [1]", "f.yaml:1: at: expected text or a number, found a list", id="another type"),
        pytest.param("stops: [1s, -1]", "f.yaml:1: stops[1]: -1 is negative; write 0 or more", id="the parser refuses"),
        pytest.param(
            "either: [1]",
            "f.yaml:1: either: expected text or a number or a mapping or nothing, found a list",
            id="no member of a union",
        ),
    ],
)
def test_a_mistake_is_about_what_is_written(text, message):
    assert [message] == [str(mistake) for mistake in mistakes_in(document(text), Timetable)]
    value, mistakes = read(document(text), Timetable)
    assert (None, [message]) == (value, [str(mistake) for mistake in mistakes])
    with pytest.raises(InputError):
        convert(document(text), Timetable)
