"""Sizes and names as people write them; durations are tested where they are read."""

import pytest

from lamina.simulator.workloads import field_types


@pytest.mark.parametrize(
    ("written", "size"),
    [
        pytest.param("771kB", 771_000, id="decimal"),
        pytest.param("300MB", 300_000_000, id="megabytes"),
        pytest.param("1.5GB", 1_500_000_000, id="a fraction"),
        pytest.param("300M", 300_000_000, id="without the B"),
        pytest.param("23Mi", 23 * 1024**2, id="binary"),
        pytest.param("1.5GiB", 3 * 2**29, id="binary with the B"),
        pytest.param("300 MB", 300_000_000, id="with a space"),
        pytest.param(4096, 4096, id="plain bytes"),
        pytest.param(4096.0, 4096, id="plain bytes as a float"),
        pytest.param("4096B", 4096, id="bytes"),
        pytest.param("0.5", 1, id="part of a byte is a byte"),
        pytest.param(0, 0, id="nothing"),
        pytest.param("1024TiB", 2**50, id="the largest"),
    ],
)
def test_a_size_is_read_as_bytes(written, size):
    assert size == field_types.size(written)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        pytest.param("300m", "is not a size; write for example 300MB", id="thousandths are never meant"),
        pytest.param("10KB", "is not a size", id="a capital K"),
        pytest.param("large", "is not a size", id="a word"),
        pytest.param("1e9", "is not a size", id="an exponent in text"),
        pytest.param("-5MB", "is negative", id="negative"),
        pytest.param(float("inf"), "is not a size", id="endless"),
        pytest.param("2048TiB", "too large", id="more than a PiB"),
        pytest.param("1" * 65, "is not a size", id="a long text"),
    ],
)
def test_what_is_no_size_is_told_in_words(written, words):
    with pytest.raises(ValueError, match=words):
        field_types.size(written)


@pytest.mark.parametrize("written", ["100MB", "100MB/s", "100 MB/s", 100_000_000, "800Mbit", "800 Mbit/s", "0.8Gbit"])
def test_a_bandwidth_is_a_size_each_second_in_bytes_or_bits(written):
    assert 100_000_000 == field_types.bandwidth(written)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (0, "downloads nothing"),
        ("0Mbit", "downloads nothing"),
        ("fast", "'fast' is not a rate; write for example 100MB or 50Mbit"),
        ("10Xbit", "'10Xbit' is not a rate"),
        ("-1Gbit", "'-1Gbit' is negative"),
    ],
)
def test_what_is_no_bandwidth_is_told_in_words(written, words):
    with pytest.raises(ValueError, match=words):
        field_types.bandwidth(written)


def test_a_rate_may_be_0_and_part_of_a_byte_is_a_byte():
    assert (0, 1) == (field_types.rate("0"), field_types.rate("1bit"))


@pytest.mark.parametrize(("written", "lag"), [("10s", 10.0), (5, 5.0), (["1s", 2, "500ms"], (1.0, 2.0, 0.5))])
def test_a_delay_is_a_duration_or_several_to_draw_from(written, lag):
    assert lag == field_types.lag(written)


@pytest.mark.parametrize(("written", "portion"), [(0, 0), (3, 3), ("25%", 0.25), ("100 %", 1.0), ("0%", 0.0)])
def test_a_portion_is_a_number_or_a_share(written, portion):
    assert (portion, type(portion)) == (field_types.portion(written), type(field_types.portion(written)))


@pytest.mark.parametrize("written", [-1, 0.5, 1_000_001, "2", "101%", "-5%", "%", True])
def test_what_is_no_portion_is_told_in_words(written):
    with pytest.raises(ValueError, match="is not a number of pods; write for example 1, or 25%"):
        field_types.portion(written)


@pytest.mark.parametrize("name", ["n1", "web-1.example", "0", "a" * 192])
def test_a_name_is_what_kubernetes_takes(name):
    assert name == field_types.object_name(name)


@pytest.mark.parametrize("name", ["", "Web", "web_1", "-web", "web-", "web 1", "ä", "a" * 193, "web\n"])
def test_what_is_no_name_is_told_in_words(name):
    with pytest.raises(ValueError, match="cannot be a name"):
        field_types.object_name(name)


@pytest.mark.parametrize(("written", "words"), [("-1", "is negative"), ("four", "is not a quantity")])
def test_what_is_no_amount_is_told_in_words(written, words):
    with pytest.raises(ValueError, match=words):
        field_types.resource(written)
