"""
Builds parts once per machine; the programs stay in the user's cache folder.

    <cache>/lamina/testbed/<part>-<version>-<fingerprint>/<program>

The fingerprint covers the wrapper module and the build settings, so a change of either builds again and never changes
what another checkout uses. A folder appears complete or not at all. If several processes need the same part, one builds
it and the others wait. Go fetches modules with its own settings and checks them against go.sum.
"""

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from testbed import parts as catalog
from testbed import toolchain
from testbed.errors import BuildError
from testbed.parts import Part

# Module proxies limit the rate when many modules are requested at once.
PAUSES: Final = (5, 15, 45, 90)
PASSING: Final = (
    "429",
    "Too Many Requests",
    "500 Internal",
    "502 Bad",
    "503 Service",
    "504 Gateway",
    "timeout",
    "connection reset",
    "unexpected EOF",
)
# Building may take both cores for minutes; other processes on the machine have priority.
NICENESS: Final = 10
# Go's output of a failed build may name hundreds of files; the cause is at the end.
LAST_LINES: Final = 20


def home() -> Path:
    """Return the folder for programs and for the notes of running testbeds."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore a relative path.
    root = Path(cache) if cache.startswith("/") else Path.home() / ".cache"
    return root / "lamina" / "testbed"


def place(part: Part) -> Path:
    """Return the folder of the programs of *part*, whether or not they are built."""
    return home() / f"{part.name}-{part.version}-{fingerprint(part)}"


def fingerprint(part: Part) -> str:
    """Return a short hash of everything *part* is built from."""
    digest = hashlib.sha256()
    for path in sorted(part.folder.iterdir()):
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    digest.update("\0".join([*flags(part), *part.packages, *settings(part), platform.machine()]).encode())
    return digest.hexdigest()[:12]


def flags(part: Part) -> list[str]:
    """Return the arguments of `go build`."""
    tags = ["-tags", ",".join(part.tags)] if part.tags else []
    return ["-trimpath", "-buildvcs=false", "-mod=readonly", *tags, "-ldflags", part.link_flags]


def settings(part: Part) -> list[str]:
    """Return the environment variables of `go build`."""
    return [f"CGO_ENABLED={part.cgo:d}", "GOWORK=off"]


def is_built(part: Part) -> bool:
    """Return whether *part* is built."""
    return place(part).is_dir()


def build(parts: Sequence[Part]) -> list[Path]:
    """Build all *parts* that are missing, one after the other; return the folder of each."""
    missing = [part for part in parts if not is_built(part)]
    if len(missing) > 1:
        # Check early: a missing Go is reported before the first part has taken its minutes.
        for part in missing:
            toolchain.find(part)
        say(f"{len(missing)} parts to build, usually {minutes(missing)} on two cores; this happens once")
    return [programs(part) for part in parts]


def ensure(name: str, version: str = catalog.KUBERNETES, program: str = "") -> Path:
    """Return the path of a program of the part *name*, after building it if needed; default: the part's first program."""
    part = catalog.find(name, version)
    return programs(part) / (program or part.programs[0])


def programs(part: Part) -> Path:
    """Return the folder with the programs of *part*, after building them if needed."""
    folder = place(part)
    if folder.is_dir():
        return folder
    go = toolchain.find(part)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with alone(folder):
        # Another process may have built it while this one waited.
        if not folder.is_dir():
            make(part, go, folder)
    return folder


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the build lock of *folder*; the lock ends with the process."""
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that is building {folder.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make(part: Part, go: Path, folder: Path) -> None:
    """Build into a folder beside *folder*, and move it there when it is complete."""
    say(f"building {part.name} {part.version}, usually {minutes([part])} on two cores; this happens once")
    started = time.monotonic()
    # The lock holder is the only builder, so leftovers of other builds can be removed.
    for left in folder.parent.glob(f"{folder.name}.new-*"):
        shutil.rmtree(left, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix=f"{folder.name}.new-", dir=folder.parent))
    try:
        for package, program in zip(part.packages, part.programs, strict=True):
            compile_package(part, go, package, new / program)
        new.chmod(0o755)
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    say(f"built {part.name} {part.version} in {time.monotonic() - started:.0f} s")


def compile_package(part: Part, go: Path, package: str, program: Path) -> None:
    """Build one program; retry while the module proxy limits the rate."""
    command = [str(go), "build", *flags(part), "-o", str(program), package]
    environment = {**os.environ, **dict(setting.split("=", 1) for setting in settings(part))}
    if shutil.which("nice"):
        command = ["nice", "-n", str(NICENESS), *command]
    for pause in (*PAUSES, None):
        run = subprocess.run(
            command, cwd=part.folder, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
        if run.returncode == 0:
            return
        if pause is None or not any(word in run.stderr for word in PASSING):
            told = "\n".join(run.stderr.splitlines()[-LAST_LINES:])
            raise BuildError(f"{part.name} {part.version} cannot be built with {go}:\n{told}")
        say(f"modules cannot be fetched, retrying in {pause} s")
        time.sleep(pause)


def minutes(parts: Sequence[Part]) -> str:
    """Return the usual build time as text."""
    seconds = sum(part.seconds for part in parts)
    return f"{seconds} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def say(words: str) -> None:
    """Print a message for the user."""
    sys.stderr.write(f"testbed: {words}\n")
    sys.stderr.flush()
