"""Digests: what is let in, and how stacks of layers are named."""

import copy
import pickle

import pytest

from lamina.model.digest import Digest, DigestError, chain_ids, digest_of, parse_digest
from lamina.model.errors import LaminaError

A = "a" * 64
B = "b" * 64


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"sha256:{A}", id="sha256"),
        pytest.param(f"sha512:{A}{B}", id="sha512"),
        pytest.param("sha256:" + "0123456789abcdef" * 4, id="every digit"),
    ],
)
def test_the_two_algorithms_of_registries_are_let_in(text):
    """A digest is returned as it was written."""
    assert text == parse_digest(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "the algorithm is missing", id="empty"),
        pytest.param(A, "the algorithm is missing", id="bare digits"),
        pytest.param(f":{A}", "algorithm '' is not supported", id="nothing before the colon"),
        pytest.param(f"md5:{'a' * 32}", "algorithm 'md5' is not supported", id="md5"),
        pytest.param(f"sha384:{'a' * 96}", "algorithm 'sha384' is not supported", id="sha384"),
        pytest.param(f"SHA256:{A}", "algorithm 'SHA256' is not supported", id="upper-case algorithm"),
        pytest.param(f"sha256:{A.upper()}", "lower-case", id="upper-case digits"),
        pytest.param(f"sha256:{A[1:]}g", "only 0-9", id="a letter beyond f"),
        pytest.param(f"sha256:{A[1:]}\n", "only 0-9", id="line break at the end"),
        pytest.param(f"sha256:{A[1:]}٣", "only 0-9", id="digit of another script"),
        pytest.param(f"sha256:{A[1:]}", "has 64 digits, not 63", id="one digit short"),
        pytest.param(f"sha256:{A}a", "has 64 digits, not 65", id="one digit too many"),
        pytest.param(f"sha512:{A}", "has 128 digits, not 64", id="sha512 with the length of sha256"),
        pytest.param("sha256:", "has 64 digits, not 0", id="no digits"),
        pytest.param(f"sha512:{A}{B}0", "longer than 135 characters", id="longer than any digest"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text, problem):
    """One content has one name, so nothing is bent into shape."""
    with pytest.raises(DigestError) as caught:
        parse_digest(text)

    assert problem in caught.value.problem
    assert "write sha256: and 64 lower-case hexadecimal digits" in str(caught.value)


def test_a_message_shows_only_a_piece_of_a_long_text():
    """One bad field cannot fill a log."""
    with pytest.raises(DigestError) as caught:
        parse_digest("sha256:" + "a" * 100_000)

    assert len(str(caught.value)) < 300


def test_the_error_is_a_value_error_and_one_of_ours_and_can_be_copied():
    """Callers may catch either kind; workers may send it home."""
    error = DigestError("md5:0", "the algorithm 'md5' is not supported")

    assert isinstance(error, ValueError)
    assert isinstance(error, LaminaError)
    assert str(error) == str(copy.copy(error)) == str(pickle.loads(pickle.dumps(error)))


def test_content_is_named_by_its_sha256():
    """The digest of no bytes at all is a well-known number."""
    want = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    assert want == digest_of(b"")
    assert want == parse_digest(digest_of(b""))


def test_the_lowest_chain_id_is_the_layer_itself():
    """Nothing lies below the first layer, and no layers make no chain."""
    assert (f"sha256:{A}",) == chain_ids([Digest(f"sha256:{A}")])
    assert () == chain_ids([])


def test_each_chain_id_names_a_layer_and_all_below_it():
    """The digest of the chain so far, a space, and the next layer."""
    first, second, third = Digest(f"sha256:{A}"), Digest(f"sha256:{B}"), Digest(f"sha256:{A}")
    upper = digest_of(f"{first} {second}".encode())

    assert (first, upper, digest_of(f"{upper} {third}".encode())) == chain_ids([first, second, third])


def test_equal_layers_on_different_bases_have_different_chain_ids():
    """Unpacked layers are shared by prefix, not by set."""
    first, second, layer = Digest(f"sha256:{A}"), Digest(f"sha256:{B}"), Digest(f"sha256:{'c' * 64}")

    assert chain_ids([first, layer])[1] != chain_ids([second, layer])[1]
