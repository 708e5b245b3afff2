"""What unquoted text stands for, and how values and paths are shown."""

import math

import pytest

from lamina.model import plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", None, id="empty: nothing"),
        pytest.param("~", None, id="tilde: nothing"),
        pytest.param("null", None, id="null: nothing"),
        pytest.param("true", True, id="true"),
        pytest.param("on", True, id="on: true, as kubectl reads it"),
        pytest.param("No", False, id="No: false, as kubectl reads it"),
        pytest.param("y", "y", id="y: text"),
        pytest.param("oN", "oN", id="oN: text, no such spelling"),
        pytest.param("0", 0, id="zero"),
        pytest.param("-12", -12, id="negative"),
        pytest.param("1_000", 1000, id="underscores between digits"),
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("0b101", 5, id="binary"),
        pytest.param("017", "017", id="leading zero: text, since versions of YAML disagree"),
        pytest.param("0o17", "0o17", id="0o17: text, since versions of YAML disagree"),
        pytest.param("1:30", "1:30", id="1:30: text, not ninety"),
        pytest.param("1:30.5", "1:30.5", id="1:30.5: text, not ninety and a half"),
        pytest.param("1.50", 1.5, id="point"),
        pytest.param("-.5", -0.5, id="leading point"),
        pytest.param("1e9", 1e9, id="exponent without point"),
        pytest.param("1.5E-3", 0.0015, id="exponent with sign"),
        pytest.param("-.inf", -math.inf, id="minus infinity"),
        pytest.param("2024-05-01", "2024-05-01", id="date: text"),
        pytest.param("2024-05-01T10:00:00Z", "2024-05-01T10:00:00Z", id="time: text"),
        pytest.param("=", "=", id="equals sign: text"),
        pytest.param("٣", "٣", id="digits of other scripts: text"),
        pytest.param("0x", "0x", id="hexadecimal without digits: text"),
        pytest.param("inf", "inf", id="inf without point: text"),
    ],
)
def test_unquoted_text_is_read_as_kubernetes_does_less_the_surprises(text, expected):
    """
    Words and numbers become what kubectl makes of them; what YAML's versions disagree about stays text.
    """
    actual = plain.scalar(text)

    assert (type(expected), expected) == (type(actual), actual)


def test_not_a_number_is_a_number_to_yaml():
    """
    ``.nan`` is read; whether it is wanted is for others to say.
    """
    assert str(math.nan) == str(plain.scalar(".nan"))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("9" * 257, id="whole number of 257 digits"),
        pytest.param("0x" + "f" * 300, id="hexadecimal of 300 digits"),
        pytest.param("1e999", id="number beyond a float"),
    ],
)
def test_a_number_that_cannot_be_held_is_refused(text):
    """
    Nothing turns silently into infinity, and no number is too long to be written in a message.
    """
    with pytest.raises(ValueError, match="put it in quotes if it is text"):
        plain.scalar(text)


def test_an_address_is_shown_without_its_password():
    assert "'http://…@host/path'" == plain.shown("http://somebody:hunter2@host/path")
    assert "hunter2" not in plain.shown("http://somebody:hunter2" + "x" * 100 + "@host")
    assert "'somebody@host'" == plain.shown("somebody@host")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param((), "", id="root"),
        pytest.param(("pods", 2, "requests", "cpu"), "pods[2].requests.cpu", id="fields and positions"),
        pytest.param((0, "name"), "[0].name", id="a list at the root"),
        pytest.param(("labels", "app.kubernetes.io/name"), "labels['app.kubernetes.io/name']", id="a name with dots"),
        pytest.param(("a\nb",), "['a\\nb']", id="a name with a line break"),
        pytest.param(("x" * 200,), f"['{'x' * 57}...']", id="a long name"),
    ],
)
def test_a_path_is_written_as_a_person_would(path, expected):
    """
    Dots between plain names, brackets around positions and odd names; never more than one line.
    """
    assert expected == plain.written_path(path)


@pytest.mark.parametrize(
    ("number", "noun", "many", "text"),
    [
        pytest.param(0, "pod", "", "0 pods", id="none"),
        pytest.param(1, "pod", "", "1 pod", id="one"),
        pytest.param(2, "pod", "", "2 pods", id="two"),
        pytest.param(12_345, "node", "", "12,345 nodes", id="thousands"),
        pytest.param(1, "entry", "entries", "1 entry", id="one of an irregular noun"),
        pytest.param(3, "entry", "entries", "3 entries", id="several of an irregular noun"),
    ],
)
def test_a_count_is_written_with_its_noun(number, noun, many, text):
    assert text == plain.plural(number, noun, many)
