"""Guided fuzzing runs by its documented command, ends by itself, and says what is missing when something is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def guided(*words, path=""):
    """Run the command as a person does; *path* is looked through for modules first."""
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-m", "tests.fuzz.guided", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_without_atheris_one_line_says_so(tmp_path):
    (tmp_path / "atheris.py").write_text("raise ImportError")

    ended = guided("extender-body", path=str(tmp_path))

    assert (ended.returncode, ended.stdout.count("\n")) == (0, 1)
    assert "needs atheris" in ended.stdout


@pytest.mark.slow
@pytest.mark.needs("atheris")
@pytest.mark.parametrize("target", ["extender-body", "extender-preemption", "node-annotations"])
def test_a_run_ends_with_what_it_tried(target):
    ended = guided(target, "--seconds", "2")

    assert ended.returncode == 0, ended.stderr
    told = re.search(r"(\d+) inputs, (\d+) of them good, slowest [\d.]+ ms, \d+ KiB more memory", ended.stdout)
    assert told
    assert int(told[1]) >= int(told[2]) > 0
