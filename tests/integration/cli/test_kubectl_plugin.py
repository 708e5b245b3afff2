"""The package's plugin for the real kubectl."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import building

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed("kubectl", alone=True)]


def run(*words: str) -> str:
    """What a program prints with the environment's programs on the PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, "PATH": path}).stdout


def test_kubectl_runs_the_command_as_its_plugin():
    kubectl = str(building.ensure("kubectl"))

    assert json.loads(run("lamina", "version", "-o", "json")) == json.loads(
        run(kubectl, "lamina", "version", "-o", "json")
    )


def test_an_examples_line_of_the_help_can_be_pasted():
    """It names the program that is on the PATH as well."""
    shown = run(str(building.ensure("kubectl")), "lamina", "explain", "--help")

    assert "\n    lamina explain web-0 -n shop\n" in shown
