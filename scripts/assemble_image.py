"""
Assemble the image's files, in the build stage of deploy/Containerfile: interpreter, packages and Lamina, each in a folder.

    assemble_image.py WHEELS OUT [EXTRA,...]

Runs with the interpreter of the base image, whatever that is, and copies only what Lamina needs: the interpreter with
its standard library, the shared libraries of all of that, certificate authorities, and the installed wheels. There is no
shell and no package manager. All times are zero, and compiled files are checked by no time and no hash, so the same input
gives the same bytes. Uses the standard library only.
"""

import compileall
import json
import os
import py_compile
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, Final

USER: Final = 65532
SITE: Final = Path("opt/lamina/site-packages")
PLUGINS: Final = Path("opt/lamina/plugins")
SBOM: Final = Path("usr/share/lamina/sbom.cdx.json")
AUTHORITIES: Final = Path("etc/ssl/certs/ca-certificates.crt")
# Parts of the standard library and of packages that no command of Lamina imports.
LEFT_OUT: Final = {
    "__pycache__",
    "dist-packages",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "site-packages",
    "test",
    "tests",
    "tkinter",
    "turtledemo",
}
SUFFIXES_LEFT_OUT: Final = {".a", ".pyc", ".pyx", ".pxd", ".h"}


def main(wheels: Path, out: Path, extras: str) -> None:
    """Write the three folders below *out*."""
    python, packages, lamina = (out / name for name in ("python", "packages", "lamina"))
    installed = out / "installed"
    install(wheels, installed, extras)
    own = {path for one in distributions(path=[str(installed)]) if one.name == "lamina" for path in top_level(one)}
    copy(installed, packages / SITE, skip=own | {"bin"})
    for name in sorted(own):
        copy_tree(installed / name, lamina / SITE / name)
    copy_python(python)
    copy_libraries(python, [python, packages, lamina])
    write_system_files(python)
    (lamina / PLUGINS).mkdir(parents=True)
    program = lamina / "usr/bin/lamina"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{interpreter()}\nfrom lamina.cli.main import main\n\nmain()\n", encoding="utf-8")
    program.chmod(0o755)
    write_json(lamina / SBOM, bill_of_materials(installed))
    for folder in (python, packages, lamina):
        compile_all(folder)
        set_times(folder)
    shutil.rmtree(installed)


def install(wheels: Path, target: Path, extras: str) -> None:
    """Install Lamina and what it needs from *wheels*, with the pip that is among them."""
    (pip,) = wheels.glob("pip-*.whl")
    (lamina,) = wheels.glob("lamina-*.whl")
    wanted = f"{lamina}[{extras}]" if extras else str(lamina)
    words = ["--no-index", f"--find-links={wheels}", "--no-compile", f"--target={target}", "--quiet", "--no-cache-dir"]
    environment = {**os.environ, "PIP_ROOT_USER_ACTION": "ignore"}
    subprocess.run([sys.executable, f"{pip}/pip", "install", *words, wanted], check=True, env=environment)


def top_level(distribution: Distribution) -> Iterator[str]:
    """Yield the names at the top of site-packages that belong to *distribution*."""
    for path in distribution.files or ():
        if path.parts[0] not in {"..", "bin"}:
            yield path.parts[0]


def interpreter() -> Path:
    """Return the interpreter's path, without links."""
    return Path(sys.executable).resolve()


def copy_python(out: Path) -> None:
    """Copy the interpreter, under its own path and as python3, and the standard library."""
    program = interpreter()
    place = out / program.relative_to("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(program, place)
    links = out / "usr/bin"
    links.mkdir(parents=True, exist_ok=True)
    (links / "python3").symlink_to(program)
    for key in ("stdlib", "platstdlib"):
        library = Path(sysconfig.get_paths()[key])
        copy(library, out / library.relative_to("/"))


def copy(source: Path, target: Path, skip: Iterable[str] = ()) -> None:
    """Copy what is needed of a folder; *skip* names entries at its top."""
    left = set(skip)
    for path in sorted(source.iterdir()):
        if path.name not in left and path.name not in LEFT_OUT and path.suffix not in SUFFIXES_LEFT_OUT:
            copy_tree(path, target / path.name)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a file, or a folder without what is left out; links become what they point at."""
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        copy(source, target)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def copy_libraries(out: Path, folders: list[Path]) -> None:
    """Copy the shared libraries that the programs in *folders* load, under the paths at which the loader finds them."""
    programs = [path for folder in folders for path in sorted(folder.rglob("*")) if is_program(path)]
    needed: set[Path] = set()
    for program in programs:
        # The loader lists the libraries itself, so that neither a shell nor ldd is needed. A library that a wheel
        # brings along is found beside it.
        told = subprocess.run(
            [str(loader()), "--list", str(program)], capture_output=True, text=True, check=False
        ).stdout
        paths = (line.partition("=>")[2].partition("(")[0].strip() for line in told.splitlines() if "=> /" in line)
        needed |= {Path(path) for path in paths}
    inside = tuple(str(folder) for folder in folders)
    for library in sorted({*needed, loader()}):
        if not str(library).startswith(inside):
            # There is no cache of the loader, so only its own folders are searched.
            local = library.is_relative_to("/usr/local")
            target = out / (Path("usr/lib") / library.name if local else library.relative_to("/"))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(library.resolve(), target)
            target.chmod(0o755)


def is_program(path: Path) -> bool:
    """Return whether *path* is a program or a shared library."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def loader() -> Path:
    """Return the loader that the interpreter names."""
    text = interpreter().read_bytes()
    start = text.index(b"/ld-linux")
    start = text.rindex(b"\0", 0, start) + 1
    return Path(text[start : text.index(b"\0", start)].decode())


def write_system_files(out: Path) -> None:
    """Write the user, the folder for temporary files and the certificate authorities."""
    etc = out / "etc"
    etc.mkdir(exist_ok=True)
    (etc / "passwd").write_text(
        f"root:x:0:0:root:/:/sbin/nologin\nlamina:x:{USER}:{USER}::/:/sbin/nologin\n", encoding="utf-8"
    )
    (etc / "group").write_text(f"root:x:0:\nlamina:x:{USER}:\n", encoding="utf-8")
    temporary = out / "tmp"
    temporary.mkdir(exist_ok=True)
    temporary.chmod(0o1777)
    bundle = Path("/") / AUTHORITIES
    # A base whose packages are unpacked and not configured has the authorities one by one.
    parts = [bundle] if bundle.exists() else sorted(Path("/usr/share/ca-certificates/mozilla").glob("*.crt"))
    if not parts:
        raise SystemExit("the base image has no certificate authorities: install ca-certificates in it")
    target = out / AUTHORITIES
    target.parent.mkdir(parents=True)
    target.write_bytes(b"".join(path.read_bytes() for path in parts))


def bill_of_materials(installed: Path) -> dict[str, Any]:
    """Return what is installed as a CycloneDX document, the same for the same input: without time and serial number."""
    found = sorted(distributions(path=[str(installed)]), key=lambda one: one.name.lower())
    (lamina,) = [component(one, "application") for one in found if one.name == "lamina"]
    version = ".".join(map(str, sys.version_info[:3]))
    python = {
        "type": "framework",
        "bom-ref": f"pkg:generic/python@{version}",
        "name": "python",
        "version": version,
        "purl": f"pkg:generic/python@{version}",
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": lamina},
        "components": [python, *(component(one, "library") for one in found if one.name != "lamina")],
    }


def component(distribution: Distribution, kind: str) -> dict[str, Any]:
    """Return one installed package as CycloneDX names it."""
    name = distribution.name.lower().replace("_", "-")
    url = f"pkg:{'py' + 'pi'}/{name}@{distribution.version}"
    stated = distribution.metadata.get_all("License-Expression") or []
    licenses = {"licenses": [{"expression": text} for text in stated]} if stated else {}
    return {"type": kind, "bom-ref": url, "name": name, "version": distribution.version, **licenses, "purl": url}


def write_json(path: Path, data: object) -> None:
    """Write *data* as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def compile_all(folder: Path) -> None:
    """Compile every module, with paths as in the image."""
    compileall.compile_dir(
        folder,
        quiet=1,
        force=True,
        stripdir=str(folder),
        prependdir="/",
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        workers=1,
    )


def set_times(folder: Path) -> None:
    """Set all times to zero, as deep folders first."""
    for path in [*sorted(folder.rglob("*"), reverse=True), folder]:
        os.utime(path, (0, 0), follow_symlinks=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), os.environ.get("EXTRAS", ""))
