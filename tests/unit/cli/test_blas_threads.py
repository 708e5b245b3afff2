"""The command starts numpy's BLAS with one thread, unless the user chose another number."""

import os
import sys

import pytest

from lamina.cli.main import BLAS_THREADS, main


@pytest.mark.parametrize(
    ("chosen", "expected"), [pytest.param(None, "1", id="not chosen"), pytest.param("4", "4", id="chosen by the user")]
)
def test_numpy_computes_with_one_thread_unless_the_user_chooses_more(
    chosen: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BLAS_THREADS, chosen or "")
    if chosen is None:
        del os.environ[BLAS_THREADS]
    monkeypatch.setattr(sys, "argv", ["lamina", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert os.environ[BLAS_THREADS] == expected
