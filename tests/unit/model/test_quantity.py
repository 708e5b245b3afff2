"""Quantities: what is read, how it is rounded, what is refused, and how amounts are written again."""

import copy
import pickle

import pytest

from lamina.model import quantity
from lamina.model.errors import LaminaError
from lamina.model.quantity import LARGEST, QuantityError


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("0", 0, id="nothing"),
        pytest.param("-0", 0, id="minus nothing"),
        pytest.param("2", 2, id="no suffix"),
        pytest.param("+2", 2, id="plus sign"),
        pytest.param("007", 7, id="leading zeros"),
        pytest.param("1.", 1, id="point and nothing after it"),
        pytest.param(".5Ki", 512, id="point and nothing before it"),
        pytest.param("1k", 1000, id="kilo"),
        pytest.param("1M", 10**6, id="mega"),
        pytest.param("1G", 10**9, id="giga"),
        pytest.param("1T", 10**12, id="tera"),
        pytest.param("1P", 10**15, id="peta"),
        pytest.param("1E", 10**18, id="exa, not an exponent"),
        pytest.param("1Ki", 2**10, id="kibi"),
        pytest.param("1Mi", 2**20, id="mebi"),
        pytest.param("1Gi", 2**30, id="gibi"),
        pytest.param("1Ti", 2**40, id="tebi"),
        pytest.param("1Pi", 2**50, id="pebi"),
        pytest.param("1Ei", 2**60, id="exbi"),
        pytest.param("12e6", 12_000_000, id="small e"),
        pytest.param("12E6", 12_000_000, id="capital E"),
        pytest.param("5e+2", 500, id="exponent with plus"),
        pytest.param("500e-2", 5, id="exponent with minus"),
        pytest.param("128974848000m", 128_974_848, id="thousandths of bytes, as the API server may print them"),
    ],
)
def test_a_quantity_is_read_in_whole_units(text, want):
    """Every suffix of the grammar stands for its power of ten or two."""
    assert want == quantity.whole(text)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("1", 1000, id="one core"),
        pytest.param("0.1", 100, id="a tenth, exactly"),
        pytest.param("250m", 250, id="already thousandths"),
        pytest.param("1.5k", 1_500_000, id="decimal suffix"),
        pytest.param("1Ki", 1_024_000, id="binary suffix"),
        pytest.param("1500u", 2, id="millionths"),
        pytest.param("2000001n", 3, id="billionths"),
    ],
)
def test_a_quantity_is_read_in_thousandths(text, want):
    """Cpu is counted in thousandths of a core."""
    assert want == quantity.milli(text)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("1.0001", 2, id="up"),
        pytest.param("-1.0001", -2, id="down below zero"),
        pytest.param("1m", 1, id="a little is not nothing"),
        pytest.param("-1n", -1, id="a little less than nothing is not nothing"),
        pytest.param("0.0000000001", 1, id="finer than a billionth"),
        pytest.param("1e-999999999", 1, id="finer than anything"),
        pytest.param("0e-999999999", 0, id="nothing stays nothing"),
        pytest.param("0.7Ki", 717, id="a fraction of a binary unit: 716.8"),
    ],
)
def test_fractions_are_rounded_away_from_zero(text, want):
    """A small request never becomes 0."""
    assert want == quantity.whole(text)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("9223372036854775807", LARGEST, id="the largest itself"),
        pytest.param("9223372036854775808", LARGEST, id="one more"),
        pytest.param("8Ei", LARGEST, id="binary: 2 to the 63rd"),
        pytest.param("100E", LARGEST, id="decimal"),
        pytest.param("1e999999999999", LARGEST, id="an exponent that cannot be computed"),
        pytest.param("-8Ei", -LARGEST, id="below zero"),
    ],
)
def test_amounts_stop_at_64_bits(text, want):
    """A number that does not fit is as large as can be, never a small one."""
    assert want == quantity.whole(text)


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param(2, 2000, id="int"),
        pytest.param(-3, -3000, id="negative int"),
        pytest.param(10**5000, LARGEST, id="int of five thousand digits"),
        pytest.param(0.1, 100, id="float: what was written, not its binary neighbour"),
        pytest.param(1e22, LARGEST, id="float that prints with an exponent"),
        pytest.param(1e-05, 1, id="float that prints with a negative exponent"),
    ],
)
def test_numbers_of_a_yaml_file_are_read_like_their_text(value, want):
    """``cpu: 0.1`` and ``cpu: "0.1"`` are the same request."""
    assert want == quantity.milli(value)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        pytest.param("", "no digits", id="empty"),
        pytest.param("-", "no digits", id="sign only"),
        pytest.param(".", "no digits", id="point only"),
        pytest.param("Mi", "no digits before the suffix", id="suffix only"),
        pytest.param("1.1.", "more than one point", id="two points"),
        pytest.param("1..1", "more than one point", id="two points in a row"),
        pytest.param("1GB", "'GB' is not a suffix", id="a suffix people use"),
        pytest.param("1K", "'K' is not a suffix", id="capital kilo"),
        pytest.param("1mi", "'mi' is not a suffix", id="small mebi"),
        pytest.param("1i", "'i' is not a suffix", id="half a suffix"),
        pytest.param("1e", "'e' is not a suffix", id="exponent without digits"),
        pytest.param("1e+", "'e+' is not a suffix", id="exponent with a sign only"),
        pytest.param("1e3Ki", "'e3Ki' is not a suffix", id="exponent and suffix"),
        pytest.param("1+1", "'+1' is not a suffix", id="a sum"),
        pytest.param("--1", "no digits before the suffix", id="two signs"),
        pytest.param(" 1", "no digits before the suffix", id="space before"),
        pytest.param("1 ", "' ' is not a suffix", id="space after"),
        pytest.param("1_000", "'_000' is not a suffix", id="python's underscore"),
        pytest.param("٣", "no digits before the suffix", id="digits of another script"),
        pytest.param(float("nan"), "no digits before the suffix", id="not a number"),
        pytest.param(float("inf"), "no digits before the suffix", id="infinity"),
        pytest.param(True, "neither text nor a number", id="yaml's yes"),
        pytest.param(None, "neither text nor a number", id="yaml's null"),
    ],
)
@pytest.mark.parametrize("read", [quantity.milli, quantity.whole], ids=["milli", "whole"])
def test_what_is_not_a_quantity_is_refused_with_the_reason(read, value, problem):
    """The message says what is wrong and shows what is right."""
    with pytest.raises(QuantityError) as caught:
        read(value)

    assert problem in caught.value.problem
    assert "write for example 2, 500m, 1.5Gi or 200M" in str(caught.value)


def test_a_refusal_is_no_answer_for_an_equal_number():
    """True equals 1 and 1.0 in Python, and only two of them are quantities."""
    assert (1, 1) == (quantity.whole(1), quantity.whole(1.0))
    with pytest.raises(QuantityError):
        quantity.whole(True)


def test_the_longest_text_is_read_and_one_character_more_is_refused():
    """Work is bounded by a cap on the text, not by hope."""
    assert LARGEST == quantity.whole("9" * quantity.MAX_LENGTH)
    with pytest.raises(QuantityError, match="longer than 128 characters"):
        quantity.whole("9" * (quantity.MAX_LENGTH + 1))


def test_a_message_shows_only_a_piece_of_a_long_text():
    """One bad field cannot fill a log."""
    with pytest.raises(QuantityError) as caught:
        quantity.whole("9" * 100_000)

    assert len(str(caught.value)) < 250


def test_the_error_is_a_value_error_and_one_of_ours_and_can_be_copied():
    """Callers may catch either kind; workers may send it home."""
    error = QuantityError("1GB", "'GB' is not a suffix")

    assert isinstance(error, ValueError)
    assert isinstance(error, LaminaError)
    assert str(error) == str(copy.copy(error)) == str(pickle.loads(pickle.dumps(error)))


@pytest.mark.parametrize(
    ("thousandths", "want"),
    [
        pytest.param(0, "0", id="nothing"),
        pytest.param(2000, "2", id="whole"),
        pytest.param(1500, "1500m", id="one and a half"),
        pytest.param(-1500, "-1500m", id="negative"),
        pytest.param(-2000, "-2", id="negative and whole"),
    ],
)
def test_thousandths_are_written_without_a_fraction(thousandths, want):
    """The m appears only where it is needed."""
    assert want == quantity.format_milli(thousandths)


@pytest.mark.parametrize(
    ("size", "want"),
    [
        pytest.param(0, "0", id="nothing"),
        pytest.param(1023, "1023", id="below a kibibyte"),
        pytest.param(1024, "1Ki", id="a kibibyte"),
        pytest.param(1536 * 2**20, "1536Mi", id="one and a half gibibytes"),
        pytest.param(512 * 2**20, "512Mi", id="mebibytes"),
        pytest.param(1_000_000, "1000000", id="divisible by no binary unit"),
        pytest.param(2**60, "1Ei", id="an exbibyte"),
        pytest.param(-(2**30), "-1Gi", id="negative"),
    ],
)
def test_bytes_are_written_exactly_with_the_largest_binary_suffix(size, want):
    """Nothing is rounded, so reading it again gives the same number."""
    assert want == quantity.format_bytes(size)


@pytest.mark.parametrize(
    ("size", "want"),
    [
        pytest.param(0, "0 B", id="nothing"),
        pytest.param(999, "999 B", id="bytes"),
        pytest.param(1000, "1.0 kB", id="the first kilobyte"),
        pytest.param(9_949, "9.9 kB", id="one decimal below ten"),
        pytest.param(9_950, "10 kB", id="none from ten"),
        pytest.param(771_000, "771 kB", id="hundreds of kilobytes"),
        pytest.param(999_499, "999 kB", id="just below the next unit"),
        pytest.param(999_500, "1.0 MB", id="rounded into the next unit"),
        pytest.param(312_400_000, "312 MB", id="hundreds of megabytes"),
        pytest.param(1_900_000_000, "1.9 GB", id="gigabytes"),
        pytest.param(5 * 10**21, "5000 EB", id="beyond the last unit"),
        pytest.param(-1_900_000_000, "-1.9 GB", id="negative"),
    ],
)
def test_people_read_bytes_in_decimal_units(size, want):
    """Two or three digits are enough to compare downloads."""
    assert want == quantity.human_bytes(size)
