"""Fuzz tests have a marker of their own: `make soak` runs them for long, CI for 5 to 20 seconds each, a person's `make test` for 2."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", "fuzz: throws broken input at a parser for LAMINA_FUZZ_SECONDS of processor time."
    )
