"""What an agent says: one line for each message, whatever is in it."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from lamina.services.agent import logs
from lamina.services.agent.logs import Verbosity, set_up, verbose


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Leave logging as it was found."""
    root = logging.getLogger("lamina")
    before = root.handlers[:], root.propagate, root.level, Verbosity.level
    yield
    root.handlers[:], root.propagate, Verbosity.level = before[0], before[1], before[3]
    root.setLevel(before[2])


def said(form: logs.Format, message: str, **fields: object) -> str:
    stream = io.StringIO()
    set_up(0, form, stream)
    logging.getLogger("lamina.x").warning(message, extra=fields)
    return stream.getvalue()


@pytest.mark.parametrize("hostile", ["a\nb", "a\r\x1b[2Jb", "\u2028", "=", ""])
def test_a_message_is_one_line(hostile):
    text = said("text", f"it said {hostile}", problem=hostile)

    assert 1 == len(text.splitlines())
    assert "\x1b" not in text
    assert {"msg": f"it said {hostile}", "problem": hostile, "level": "warning"}.items() <= json.loads(
        said("json", f"it said {hostile}", problem=hostile)
    ).items()


def test_text_is_for_people():
    assert said("text", "reported", images=3, trouble="").endswith(' W reported images=3 trouble=""\n')


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_mistake_of_ours_is_one_line_too(form):
    stream = io.StringIO()
    set_up(0, form, stream)
    logging.getLogger("lamina.x").warning("oh", exc_info=ValueError("why"))

    assert 1 == len(stream.getvalue().splitlines())
    assert "ValueError" in stream.getvalue()


def test_verbosity_says_how_much():
    set_up(logs.REPORTS, "text", io.StringIO())

    assert [True, False, False] == [verbose(level) for level in (logs.REPORTS, logs.IMAGES, logs.LOOKS)]
