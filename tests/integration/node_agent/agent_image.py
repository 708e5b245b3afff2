"""
An image with this very Python and this very Lamina in it, so that the DaemonSet of deploy/ can be run as it is.

It holds what an agent needs and no more: an interpreter, the packages it imports, and the shared libraries of both.
"""

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from testbed import made

PACKAGES: Final = (
    "click",
    "google",
    "grpc",
    "httptools",
    "lamina",
    "msgspec",
    "rich",
    "typing_extensions",
    "yaml",
    "_yaml",
    "zstandard",
)
LEFT_OUT: Final = {
    "__pycache__",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "site-packages",
    "test",
    "tests",
    "tkinter",
    "turtledemo",
}
COMMAND: Final = ["/python/bin/python3", "-m", "lamina.cli.main"]
ENVIRONMENT: Final = {
    "LD_LIBRARY_PATH": "/deps",
    "PYTHONHOME": "/python",
    "PYTHONPATH": "/site",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""What a container needs to run `COMMAND`; an image of its own would have it built in."""


def agent_image() -> made.MadeImage:
    """Make the image, in three layers as a person would: Python, what was installed, Lamina."""
    python = dict(_standard_library())
    installed = {path: data for name in PACKAGES if name != "lamina" for path, data in _package(name)}
    lamina = dict(_package("lamina"))
    libraries = {f"deps/{library.name}": library.read_bytes() for library in _libraries()}
    loader = _loader()
    python |= libraries | {str(loader).lstrip("/"): loader.read_bytes()}
    return made.image([made.layer(files, "zstd") for files in (python, installed, lamina)])


def _standard_library() -> Iterator[tuple[str, bytes]]:
    root = Path(sysconfig.get_paths()["stdlib"])
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    yield "python/bin/python3", Path(sys.executable).resolve().read_bytes()
    for path in _files(root):
        yield f"python/lib/{version}/{path.relative_to(root)}", path.read_bytes()


def _package(name: str) -> Iterator[tuple[str, bytes]]:
    spec = find_spec(name)
    if spec is None:
        return
    # A namespace package has no file of its own.
    for place in spec.submodule_search_locations or ():
        for path in _files(Path(place)):
            yield f"site/{name}/{path.relative_to(place)}", path.read_bytes()
    if not spec.submodule_search_locations and spec.origin:
        origin = Path(spec.origin)
        yield f"site/{origin.name}", origin.read_bytes()


def _files(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and LEFT_OUT.isdisjoint(path.relative_to(root).parts) and path.suffix not in (".a", ".pyc"):
            yield path


def _libraries() -> Iterator[Path]:
    """Every shared library that the interpreter or an extension wants."""
    roots = [Path(sysconfig.get_paths()["stdlib"]), *(Path(where) for name in PACKAGES for where in _places(name))]
    programs = [
        Path(sys.executable).resolve(),
        *(path for root in roots for path in _files(root) if ".so" in path.name),
    ]
    told = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    found = {line.split("=>")[1].split("(")[0].strip() for line in told.splitlines() if "=> /" in line}
    yield from map(Path, sorted(found))


def _places(name: str) -> list[str]:
    spec = find_spec(name)
    return list(spec.submodule_search_locations or ()) if spec is not None else []


def _loader() -> Path:
    """The program that starts programs, by the path that is written in them."""
    told = subprocess.run(
        ["ldd", str(Path(sys.executable).resolve())], capture_output=True, text=True, check=True
    ).stdout
    return next(Path(line.split("(")[0].strip()) for line in told.splitlines() if line.strip().startswith("/"))
