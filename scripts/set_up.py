"""
Make .venv ready: `set_up.py runtime` for what Lamina runs with, `set_up.py dev` for that and the tools that check it.

The Makefile calls this before anything else, with whatever Python a person has. So the file keeps to syntax that
older versions can read, says in one line what is missing, and does nothing when .venv already fits pyproject.toml,
constraints.txt, the place of the checkout and the interpreter.
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
# The build tools come first and by the same pins, so that building the package fetches nothing unpinned.
BUILD = ["hatchling", "editables"]
# Package indexes ask for patience more often than pip's own retries allow for.
PAUSES = [5, 15, 45, 90]
PASSING = ("429", "Too Many Requests", "timed out", "ConnectionError", "Connection aborted", "502", "503", "504")


def main(level: str) -> "str | None":
    """Bring .venv to *level*; the answer is a complaint for the person who waits, or None."""
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
        return "pip could not install what Lamina needs; what it said stands above"
    write(level, mark)
    return None


def complaint() -> "str | None":
    """What this Python lacks and what to do about it; None when it will do."""
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
    """Whether a program is there and starts; version managers leave names on the PATH that do not."""
    if shutil.which(name) is None:
        return False
    return subprocess.call([name, "-c", ""], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0


def fingerprint() -> str:
    """Everything .venv depends on, as one word."""
    digest = hashlib.sha256(home().encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update(Path(name).read_bytes())
    return digest.hexdigest()


def home() -> str:
    """Where the checkout is and which interpreter serves it: when either changes, .venv is made anew."""
    return f"{Path.cwd()}\n{sys.version}"


def interpreter() -> str:
    """The Python to build on; seen from inside a virtual environment, the one that environment was made from."""
    inside = sys.prefix != sys.base_prefix
    return str(Path(sys.executable).resolve()) if inside else sys.executable


def usable() -> bool:
    """Whether the .venv that is there can be kept and added to."""
    if read("home") != home():
        return False
    trial = subprocess.run([str(PYTHON), "-m", "pip", "--version"], stdout=subprocess.DEVNULL, check=False)
    return trial.returncode == 0


def stamp(name: str) -> Path:
    """The file that remembers what .venv was made for."""
    return VENV / f"stamp-{name}"


def read(name: str) -> "str | None":
    """What a stamp says; None when there is none."""
    try:
        return stamp(name).read_text(encoding="utf-8")
    except OSError:
        return None


def write(name: str, text: str) -> None:
    """Leave a stamp."""
    stamp(name).write_text(text, encoding="utf-8")


def pip(arguments: "list[str]") -> bool:
    """Install by the pins, waiting while the index asks for patience; pip's words are shown when it fails."""
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
    """Tell the person who waits."""
    sys.stderr.write(f"lamina: {words}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    if sys.argv[1:] not in (["runtime"], ["dev"]):
        sys.exit("usage: set_up.py runtime|dev")
    os.chdir(ROOT)
    problem = main(sys.argv[1])
    sys.exit(f"lamina: {problem}" if problem else 0)
