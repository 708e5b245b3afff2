"""
Prepare .venv: `set_up.py runtime` installs what Lamina runs with, `set_up.py dev` also the tools that check it.

The Makefile calls this first, with any Python the user has. So the file uses syntax that older versions can read,
reports what is missing in one line, and does nothing if .venv already fits pyproject.toml, constraints.txt, the path of
the checkout and the interpreter.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
VENV = Path(".venv")
PYTHON = VENV / "bin" / "python"
# The build tools come first and with the same pins, so that building the package fetches nothing unpinned.
BUILD = ["hatchling", "editables"]
# Package indexes limit rates for longer than pip's own retries last.
PAUSES = [5, 15, 45, 90]
PASSING = ("429", "Too Many Requests", "timed out", "ConnectionError", "Connection aborted", "502", "503", "504")


def main(level: str) -> "str | None":
    """Bring .venv to *level*; return a message for the user if that fails, else None."""
    lacking = complaint()
    if lacking:
        return lacking
    mark = fingerprint()
    if mark in {read("dev"), read(level)}:
        return None
    say(f"setting up {VENV} with Python {sys.version.split()[0]} ({level})")
    if not usable():
        shutil.rmtree(VENV, ignore_errors=True)
        subprocess.run([interpreter(), "-m", "venv", str(VENV)], check=True)
        write("home", home())
    package = ".[dev]" if level == "dev" else "."
    if not (pip(BUILD) and pip(["--no-build-isolation", "--editable", package])):
        return "pip could not install Lamina's dependencies; its output is above"
    write(level, mark)
    return None


def complaint() -> "str | None":
    """Return what this Python lacks and what to do about it; None if it is usable."""
    if sys.version_info < OLDEST:
        newer = [name for name in ("python3.13", "python3.12", "python3.11") if runs(name)]
        found = ".".join(map(str, sys.version_info[:2]))
        remedy = f"PYTHON={newer[0]} would do" if newer else "install one and name it: PYTHON=/path/to/python3"
        return f"Python 3.11 or newer is needed and this is {found}: {remedy}"
    try:
        import ensurepip  # noqa: F401  (whether it is there is the question)
        import venv  # noqa: F401  (likewise)
    except ImportError:
        return "this Python cannot create virtual environments: on Debian and Ubuntu, apt-get install python3-venv"
    return None


def runs(name: str) -> bool:
    """Return whether a program exists and starts; version managers leave names on the PATH that do not start."""
    if shutil.which(name) is None:
        return False
    return subprocess.call([name, "-c", ""], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0


def fingerprint() -> str:
    """Return a hash of everything .venv depends on."""
    digest = hashlib.sha256(home().encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update(Path(name).read_bytes())
    return digest.hexdigest()


def home() -> str:
    """Return the checkout's path and the interpreter: when either changes, .venv is created again."""
    return f"{Path.cwd()}\n{sys.version}"


def interpreter() -> str:
    """Return the Python to build on; inside a virtual environment, the one that environment was made from."""
    inside = sys.prefix != sys.base_prefix
    return str(Path(sys.executable).resolve()) if inside else sys.executable


def usable() -> bool:
    """Return whether the existing .venv can be kept and added to."""
    if read("home") != home():
        return False
    trial = subprocess.run([str(PYTHON), "-m", "pip", "--version"], stdout=subprocess.DEVNULL, check=False)
    return trial.returncode == 0


def stamp(name: str) -> Path:
    """Return the file that records what .venv was made for."""
    return VENV / f"stamp-{name}"


def read(name: str) -> "str | None":
    """Return the text of a stamp; None if there is none."""
    try:
        return stamp(name).read_text(encoding="utf-8")
    except OSError:
        return None


def write(name: str, text: str) -> None:
    """Write a stamp."""
    stamp(name).write_text(text, encoding="utf-8")


def pip(arguments: "list[str]") -> bool:
    """Install with the pins, retrying while the index limits the rate; print pip's output if it fails."""
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--retries", "8", "--disable-pip-version-check"]
    command += ["--constraint", "constraints.txt", *arguments]
    for pause in [*PAUSES, None]:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if run.returncode == 0:
            return True
        if pause is None or not any(word in run.stdout for word in PASSING):
            sys.stderr.write(run.stdout)
            return False
        say(f"the package index is busy; trying again in {pause} s")
        time.sleep(pause)
    return False


def say(words: str) -> None:
    """Print a message for the user."""
    sys.stderr.write(f"lamina: {words}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    if sys.argv[1:] not in (["runtime"], ["dev"]):
        sys.exit("usage: set_up.py runtime|dev")
    os.chdir(ROOT)
    problem = main(sys.argv[1])
    sys.exit(f"lamina: {problem}" if problem else 0)
