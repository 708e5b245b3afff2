"""What a person is told: one line, and nothing in it that was to be kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.clients.oci.lookup_results import HIDDEN, LONGEST, RegistryError, one_line, without_secrets

DIGEST = "sha256:" + "0a" * 32


@given(st.text(max_size=600))
def test_a_line_is_one_line_of_ordinary_signs(text):
    line = one_line(text)

    assert len(line) <= LONGEST
    assert line.isascii()
    assert line.isprintable()


@pytest.mark.parametrize(
    ("text", "secrets", "line"),
    [
        pytest.param("it says secret", ["secret"], f"it says {HIDDEN}", id="a secret"),
        pytest.param("it says secrets", ["secret", "secrets"], f"it says {HIDDEN}", id="the longest first"),
        pytest.param("it says abc", ["abc", ""], "it says abc", id="three letters are no secret"),
        pytest.param("it says " + "a" * 24, [], f"it says {HIDDEN}", id="long words"),
        pytest.param(f"manifest {DIGEST}: bad", [], f"manifest {DIGEST}: bad", id="digests stay"),
        pytest.param(
            f"manifest {DIGEST}", [DIGEST[7:]], f"manifest sha256:{HIDDEN}", id="but for secrets that look so"
        ),
        pytest.param("Basic " + "YTpi" * 10, [], f"Basic {HIDDEN}", id="what a header has"),
    ],
)
def test_secrets_and_what_may_be_left_of_them_are_taken_out(text, secrets, line):
    assert line == without_secrets(text, secrets)


@given(st.text("abcdefghij0123456789", min_size=8, max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_no_secret_is_left_whatever_stands_around_it(secret, before, after):
    assert secret not in without_secrets(f"{before}{secret}{after}", [secret])


def test_an_error_says_its_reason():
    assert "Busy: later" == str(RegistryError("Busy", "later"))
