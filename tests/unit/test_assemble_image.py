"""What deploy/Containerfile's build stage copies, tried on small folders."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import assemble_image


def wheel(folder, name, files, **metadata):
    """Write a wheel, and return its path."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {name}",
        "Version: 1.0",
        *(f"{key}: {text}" for key, text in metadata.items()),
    ]
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
        archive.writestr(f"{info}/METADATA", "\n".join(lines) + "\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        record = "".join(f"{file},,\n" for file in [*files, f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD"])
        archive.writestr(f"{info}/RECORD", record)
    return path


@pytest.fixture
def installed(tmp_path):
    """A folder with two packages, as pip leaves it."""
    files = [
        wheel(tmp_path, "lamina", {"lamina/__init__.py": "x = 1\n"}, **{"License-Expression": "Apache-2.0"}),
        wheel(
            tmp_path,
            "Some_Thing",
            {"some_thing/__init__.py": "", "some_thing/tests/test_it.py": "", "some_thing/x.h": ""},
        ),
    ]
    target = tmp_path / "installed"
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    subprocess.run([*words, f"--target={target}", *map(str, files)], check=True)
    return target


def test_the_bill_of_materials_lists_python_and_every_package_but_lamina_which_it_is_about(installed):
    bill = assemble_image.bill_of_materials(installed)

    assert ("CycloneDX", "1.5") == (bill["bomFormat"], bill["specVersion"])
    assert ("lamina", "1.0", [{"expression": "Apache-2.0"}]) == tuple(
        bill["metadata"]["component"][key] for key in ("name", "version", "licenses")
    )
    assert ["python", "some-thing"] == [one["name"] for one in bill["components"]]
    assert bill["components"][1]["purl"].endswith("/some-thing@1.0")
    assert json.dumps(bill) == json.dumps(assemble_image.bill_of_materials(installed))


def test_tests_and_headers_of_packages_are_left_out(installed, tmp_path):
    assemble_image.copy(installed, tmp_path / "out", skip={"lamina"})

    found = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*") if path.is_file()}
    assert {"some_thing/__init__.py"} == {one for one in found if "dist-info" not in one}


def test_compiled_files_and_times_are_the_same_for_the_same_input(tmp_path):
    written = []
    for name in ("one", "two"):
        folder = tmp_path / name / "opt" / "package"
        folder.mkdir(parents=True)
        (folder / "module.py").write_text("def f():\n    return 1\n", encoding="utf-8")
        assemble_image.compile_all(tmp_path / name)
        assemble_image.set_times(tmp_path / name)
        (compiled,) = folder.rglob("*.pyc")
        written.append((compiled.read_bytes(), compiled.stat().st_mtime, folder.stat().st_mtime))

    assert written[0] == written[1]
    assert (0, 0) == written[0][1:]
    assert str(tmp_path).encode() not in written[0][0]


def test_the_loader_is_the_one_that_the_interpreter_names():
    assert assemble_image.loader().exists()
    assert assemble_image.is_program(assemble_image.interpreter())
    assert not assemble_image.is_program(Path(__file__))
