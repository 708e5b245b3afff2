"""
What the image is built from: a base image made of Debian's packages, and wheels of Lamina and its dependencies.

Everything that needs a network happens here, so that the build itself needs none and the same files give the same image.
Called by image.py; `image_inputs.py` alone fetches the wheels, for a build by hand.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from packaging.markers import Marker

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "build" / "image"
WHEELS: Final = FOLDER / "wheels"
BASE: Final = FOLDER / "base.tar"
PUBLISHED_PYTHON: Final = "3.13"
"""The Python of the base that deploy/Containerfile names."""
PACKAGES: Final = ("python3", "ca-certificates", "libstdc++6")
EXTRAS: Final = "agent,fast"
MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
# The newest first; pip does not derive the older ones.
GLIBC: Final = ("2_34", "2_31", "2_28", "2_27", "2_26", "2_24", "2_17", "2_12", "2_5")


def make_base() -> str:
    """Make the base image's files from this machine's Debian sources, unless they are there; return its Python version."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not BASE.exists():
        print("image: making the base from Debian's packages", file=sys.stderr)
        new = BASE.with_suffix(".new.tar")
        sources = [
            str(path) for path in (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
        ]
        release = re.search(
            r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(encoding="utf-8"), re.MULTILINE
        )
        assert release is not None
        # Unpacked only: the build stage runs Python, and no script of a package.
        words = ["mmdebstrap", "--quiet", "--variant=extract", f"--include={','.join(PACKAGES)}", release[1], str(new)]
        words += [path for path in sources if Path(path).exists()]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
        try:
            subprocess.run(words, check=True, env=environment)
            new.rename(BASE)
        finally:
            new.unlink(missing_ok=True)
    with tarfile.open(BASE) as archive:
        found = [re.fullmatch(r"\./usr/bin/python(3\.\d+)", member.name) for member in archive]
    return next(one[1] for one in found if one)


def fetch_wheels(python: str = PUBLISHED_PYTHON, architecture: str = "amd64") -> None:
    """Fill the folder of wheels for this version of Python: Lamina's own, pip's, and the pinned versions of the rest."""
    shutil.rmtree(WHEELS, ignore_errors=True)
    WHEELS.mkdir(parents=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "315532800"}  # the first time that a zip file can hold
    built = [*pip, "wheel", "--no-deps", "--no-build-isolation", f"--wheel-dir={WHEELS}", str(ROOT)]
    subprocess.run(built, check=True, env=environment)
    pins = FOLDER / "constraints.txt"
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins.write_text("\n".join(pin for line in lines if (pin := pinned(line, python))) + "\n", encoding="utf-8")
    (lamina,) = WHEELS.glob("lamina-*.whl")
    platforms = [f"--platform=manylinux_{one}_{MACHINES[architecture]}" for one in GLIBC]
    platforms += [f"--platform=manylinux2014_{MACHINES[architecture]}"]
    words = ["download", "--only-binary=:all:", f"--python-version={python}", *platforms, f"--dest={WHEELS}"]
    words += [f"--constraint={pins}", f"{lamina}[{EXTRAS}]", "pip"]
    subprocess.run([*pip, *words], check=True)


def pinned(line: str, python: str) -> str:
    """Return the pin of a line of constraints.txt for this version of Python; pip would ask for the version it runs on."""
    pin, _, marker = line.partition("#")[0].partition(";")
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    return pin.strip() if not marker or Marker(marker.strip()).evaluate(environment) else ""


def version() -> str:
    """Return Lamina's version."""
    found = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


if __name__ == "__main__":
    fetch_wheels(os.environ.get("IMAGE_PYTHON", PUBLISHED_PYTHON), os.environ.get("ARCHITECTURE", "amd64"))
