"""Reading what repeats: once, unless it is long or wrong."""

import msgspec
import pytest

from lamina.wire.decode_cache import LONGEST, memoized

TWELVE = b'{"number":12}'


class Number(msgspec.Struct):
    """What the reader of these tests expects."""

    number: int


@pytest.fixture
def read():
    """The texts that were really read."""
    return []


@pytest.fixture
def recall(read):
    """A reader with a memory that takes numbers, and writes down what it is asked."""

    def number(text):
        read.append(text)
        return (msgspec.json.decode(text, type=Number).number,)

    return memoized("spec.number", number)


def test_a_text_is_read_once_and_what_it_says_is_shared(recall, read):
    first, second = recall(msgspec.Raw(TWELVE)), recall(TWELVE)

    assert first is second
    assert [TWELVE] == read


def test_different_texts_are_different_things(recall):
    assert ((12,), (13,)) == (recall(TWELVE), recall(b'{"number":13}'))


def test_a_long_text_is_not_kept(recall, read):
    """Otherwise a client that sends many of them could fill the memory."""
    text = b" " * LONGEST + TWELVE
    recall(text)
    recall(text)

    assert [text, text] == read


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(b"7", r"^spec\.number: Expected `object`, got `int`$", id="wrong type"),
        pytest.param(b'{"x":' * 100_000, r"^spec\.number: maximum recursion depth", id="too deep"),
        pytest.param(b"", r"^spec\.number: Input data was truncated$", id="nothing"),
    ],
)
def test_a_mistake_names_its_place_each_time(recall, text, words):
    for _ in range(2):
        with pytest.raises(ValueError, match=words):
            recall(text)
