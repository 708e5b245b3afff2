"""
Client libraries and tools, installed for one run into a temporary folder below the user's cache folder.

Each function returns None if the libraries cannot be installed, after one line about the reason.
"""

import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from testbed import building

ROOT: Final = Path(__file__).resolve().parents[2]
SECONDS: Final = 900
JAVASCRIPT: Final = "@kubernetes/client-node"
OLDEST_NODE: Final = {"1.4.0": (18, 0), "2.0.1": (22, 19)}
"""Versions of the JavaScript client, and the oldest Node.js that each runs on."""
NODE: Final = "22.23.3"
"""Version of Node.js that npm installs if the machine's is too old."""


@dataclass(frozen=True)
class JavascriptEnvironment:
    """A folder with one version of the JavaScript client, and the program that runs it."""

    version: str
    node: str
    folder: Path


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Return a new folder below the user's cache folder, and remove it at the end."""
    parent = building.home().parent / "clients"
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as name:
        yield Path(name)


def python_environment(folder: Path) -> Path | None:
    """Install the extra `clients` into *folder*; return its Python."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        names = tomllib.load(file)["project"]["optional-dependencies"]["clients"]
    python = folder / "python" / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pinned = [*install, "--constraint", str(ROOT / "constraints.txt"), *names]
    for command in ([sys.executable, "-m", "venv", str(folder / "python")], pinned):
        if not _done("the Python clients", command):
            return None
    return python


def tool_environment(folder: Path, name: str, *packages: str, plain: Sequence[str] = ()) -> Path | None:
    """Install packages into an environment of their own, those of *plain* without what they depend on; return its Python."""
    python = folder / name / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    commands = [[sys.executable, "-m", "venv", str(folder / name)], [*install, *packages]]
    if plain:
        commands.append([*install, "--no-deps", *plain])
    return python if all(_done(name, command) for command in commands) else None


def installed_versions(python: Path) -> dict[str, str]:
    """Return the versions of all packages beside *python*."""
    listed = subprocess.run(
        [str(python), "-m", "pip", "list", "--format=json", "--disable-pip-version-check"],
        capture_output=True,
        check=True,
        timeout=SECONDS,
    ).stdout
    return {one["name"].lower().replace("-", "_"): one["version"] for one in json.loads(listed)}


def javascript_environment(folder: Path, version: str) -> JavascriptEnvironment | None:
    """Install a version of the JavaScript client, and a newer Node.js if it needs one."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        print(f"  {JAVASCRIPT} {version} is skipped: there is no {'npm' if npm is None else 'node'} on the PATH")
        return None
    place = folder / f"javascript-{version}"
    place.mkdir()
    wanted = [f"{JAVASCRIPT}@{version}"]
    own = _node_version(node) < OLDEST_NODE[version]
    name = f"node-{sys.platform}-{ {'x86_64': 'x64', 'aarch64': 'arm64'}.get(platform.machine(), platform.machine()) }"
    if own:
        wanted.append(f"{name}@{NODE}")
    quiet = ["--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--loglevel=error"]
    if not _done(f"{JAVASCRIPT} {version}", [npm, "install", "--prefix", str(place), *quiet, *wanted]):
        return None
    program = str(place / "node_modules" / name / "bin" / "node") if own else node
    return JavascriptEnvironment(version, program, place)


def _node_version(node: str) -> tuple[int, ...]:
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
    return tuple(int(one) for one in re.findall(r"\d+", told)[:2])


def _done(what: str, command: Sequence[str]) -> bool:
    """Run a command, and print one line if it fails."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        told = str(error)
    else:
        if run.returncode == 0:
            return True
        told = (run.stderr.strip() or run.stdout.strip() or f"exit code {run.returncode}").splitlines()[-1]
    print(f"  {what}: skipped, because it cannot be installed: {told}")
    return False
