"""
Build the image of deploy/Containerfile with buildah, podman or docker, twice, and compare: `make image`.

    image.py [--base IMAGE] [--extras agent,fast] [--once]

Without --base, the base is made from Debian's packages if mmdebstrap is there, or else is the one that deploy/Containerfile
names. The result is build/image/lamina.tar, which docker, podman, skopeo, ctr and kind read, and its bill of materials
build/image/sbom.cdx.json. Ends with one line of JSON.
"""

import argparse
import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import image_inputs
from image_inputs import BASE, FOLDER, ROOT

RECIPE: Final = ROOT / "deploy" / "Containerfile"
ARCHIVE: Final = FOLDER / "lamina.tar"
PARTS: Final = {
    "numpy": "opt/lamina/site-packages/numpy",
    "grpc": "opt/lamina/site-packages/grpc",
    "lamina": "opt/lamina/site-packages/lamina",
    "packages": "opt/lamina/site-packages/",
}
"""Parts of the image by the beginning of their paths; the first that fits counts. The rest is Python and its libraries."""
REST: Final = "python"
SBOM: Final = "usr/share/lamina/sbom.cdx.json"


def main(words: Sequence[str]) -> int:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(prog="make image", description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--base", default=os.environ.get("BASE", ""), help="an image with Python, for the build stage")
    parser.add_argument("--extras", default=os.environ.get("EXTRAS", image_inputs.EXTRAS), help="extras of the package")
    parser.add_argument("--once", action="store_true", help="do not build again to compare")
    chosen = parser.parse_args(words)
    engine = find_engine()
    if engine is None:
        print("lamina: no buildah, podman or docker works here; try `apt-get install buildah`", file=sys.stderr)
        return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        # Another build would change what this one reads.
        fcntl.flock(lock, fcntl.LOCK_EX)
        print(json.dumps(build(engine, chosen)))
    return 0


def build(engine: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """Build as chosen; return the report."""
    began = time.monotonic()
    local = not chosen.base and shutil.which("mmdebstrap") is not None
    python = image_inputs.make_base() if local else os.environ.get("IMAGE_PYTHON", image_inputs.PUBLISHED_PYTHON)
    image_inputs.fetch_wheels(python)
    new = FOLDER / "new.tar"
    builds = [new] if chosen.once else [new, FOLDER / "again.tar"]
    for archive in builds:
        archive.unlink(missing_ok=True)
        ENGINES[engine](chosen.base or (str(BASE) if local else ""), chosen.extras, archive)
    digests = [digest(archive) for archive in builds]
    for again in builds[1:]:
        again.unlink()
    # A reader never finds half of it.
    new.rename(ARCHIVE)
    sizes, bill = measure(ARCHIVE)
    (FOLDER / "sbom.cdx.json").write_bytes(bill)
    return {
        "image": f"lamina:{image_inputs.version()}",
        "archive": str(ARCHIVE.relative_to(ROOT)),
        "engine": engine,
        "base": chosen.base or ("debian" if local else "published"),
        "extras": chosen.extras,
        "bytes": sum(sizes.values()),
        "parts": sizes,
        "digest": digests[0],
        "digest_stable": None if chosen.once else len(set(digests)) == 1,
        "components": len(json.loads(bill)["components"]),
        "seconds": round(time.monotonic() - began, 1),
    }


def find_engine() -> str | None:
    """Return the first engine that works: docker's client alone does not build."""
    for name in ENGINES:
        if shutil.which(name) and subprocess.run([name, "info"], capture_output=True, check=False).returncode == 0:
            return name
    return None


def with_buildah(base: str, extras: str, archive: Path) -> None:
    """Build with buildah in a storage of its own, without root's networks and without an overlay."""
    storage = FOLDER / "storage"
    shutil.rmtree(storage, ignore_errors=True)
    common = ["buildah", "--storage-driver=vfs", f"--root={storage}/root", f"--runroot={storage}/run"]
    try:
        if base.endswith(".tar"):
            base = from_tar(common, Path(base))
        words = [*common, "build", "--isolation=chroot", "--timestamp=0", "--layers", "--quiet"]
        words += [*arguments(base, extras), f"--file={RECIPE}", "--tag=lamina", str(ROOT)]
        run(words)
        run([*common, "push", "--quiet", "lamina", f"docker-archive:{archive}:lamina:{image_inputs.version()}"])
    finally:
        # Its containers are over; a mount that a build left would stop the removal.
        subprocess.run([*common, "rm", "--all"], capture_output=True, check=False)
        shutil.rmtree(storage, ignore_errors=True)


def from_tar(common: Sequence[str], files: Path) -> str:
    """Make an image of a tar of files; return its name."""
    container = run([*common, "from", "scratch"])
    run([*common, "add", "--quiet", container, str(files), "/"])
    run([*common, "commit", "--quiet", "--timestamp=0", "--rm", container, "localhost/lamina-base"])
    return "localhost/lamina-base"


def with_docker(base: str, extras: str, archive: Path, engine: str = "docker") -> None:
    """Build with docker, or with podman, which has the same commands."""
    if base.endswith(".tar"):
        run([engine, "import", base, "lamina-base:latest"])
        base = "localhost/lamina-base:latest" if engine == "podman" else "lamina-base:latest"
    stable = ["--timestamp=0"] if engine == "podman" else ["--build-arg=SOURCE_DATE_EPOCH=0"]
    tag = f"lamina:{image_inputs.version()}"
    words = [
        engine,
        "build",
        "--no-cache",
        *stable,
        *arguments(base, extras),
        f"--file={RECIPE}",
        f"--tag={tag}",
        str(ROOT),
    ]
    run(words)
    run([engine, "save", f"--output={archive}", tag])


def with_podman(base: str, extras: str, archive: Path) -> None:
    """Build with podman."""
    with_docker(base, extras, archive, "podman")


ENGINES: Final[dict[str, Callable[[str, str, Path], None]]] = {
    "buildah": with_buildah,
    "podman": with_podman,
    "docker": with_docker,
}


def arguments(base: str, extras: str) -> list[str]:
    """Return the build arguments."""
    given = {
        "EXTRAS": extras,
        "VERSION": image_inputs.version(),
        "REVISION": revision(),
        **({"BASE": base} if base else {}),
    }
    return [f"--build-arg={name}={value}" for name, value in given.items()]


def revision() -> str:
    """Return the commit of the checkout."""
    told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return told.stdout.strip() or "unknown"


def run(words: Sequence[str]) -> str:
    """Run a program; return what it printed, or end with what it complained about."""
    told = subprocess.run(words, capture_output=True, text=True, check=False)
    if told.returncode:
        raise SystemExit(f"lamina: {' '.join(words[:6])} … failed\n{told.stdout[-2000:]}{told.stderr[-4000:]}")
    return told.stdout.strip()


def digest(archive: Path) -> str:
    """Return the digest of the image's configuration, which names the digests of all layers."""
    with tarfile.open(archive) as tar:
        return f"sha256:{hashlib.sha256(read(tar, manifest(tar)['Config'])).hexdigest()}"


def manifest(tar: tarfile.TarFile) -> dict[str, Any]:
    """Return the only entry of the archive's list of images."""
    (entry,) = json.loads(read(tar, "manifest.json"))
    return dict(entry)


def read(tar: tarfile.TarFile, name: str) -> bytes:
    """Return one file of an archive."""
    file = tar.extractfile(name)
    assert file is not None
    return file.read()


def measure(archive: Path) -> tuple[dict[str, int], bytes]:
    """Return the unpacked bytes of each part, and the bill of materials."""
    sizes = {REST: 0, **dict.fromkeys(PARTS, 0)}
    bill = b""
    with tarfile.open(archive) as tar:
        for name in manifest(tar)["Layers"]:
            with tarfile.open(fileobj=io.BytesIO(read(tar, name))) as layer:
                for member in layer:
                    path = member.name.removeprefix("./")
                    part = next((part for part, start in PARTS.items() if path.startswith(start)), REST)
                    sizes[part] += member.size
                    if path == SBOM:
                        bill = read(layer, member.name)
    return sizes, bill


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
