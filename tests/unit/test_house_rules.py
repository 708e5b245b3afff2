"""
What linters do not know about this house: sizes, names, and what may not stand in a file.

Each test says one rule for the whole project and lists what breaks it; CONTRIBUTING.md says the rules in prose.
"""

import ast
import functools
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

import runnables

ROOT: Final = Path(__file__).resolve().parents[2]
SRC: Final = ROOT / "src" / "lamina"

LONGEST: Final = 500
DRAWERS: Final = {"utils", "util", "helpers", "helper", "common", "misc", "base", "core", "stuff"}
GENERATED: Final = {".git", ".venv", "build", "dist", "__pycache__"}
SHARED_CLASS_NAMES: Final = {"_Camel"}
"""The private base of two configuration schemas in packages that share none."""
KINDS: Final = {"added", "changed", "fixed", "removed"}

# Spelled in pieces, so that this file keeps the rules it states.
MACHINE_PATH: Final = re.compile(r"(?<![\w./])/(?:" + "root|home|Users|work" + r")/[\w.]")
PACKAGE_HOST: Final = re.compile(
    "|".join(["py" + r"pi\.", "python" + "hosted", "index" + "-url", "trusted" + "-host", r"://\S+/sim" + r"ple\b"])
)


def files() -> list[Path]:
    """Every file of the project that a person wrote: what git tracks or would track, or without git what is there."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\0")
        paths = [ROOT / name for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for path in ROOT.rglob("*") if not is_generated(path.relative_to(ROOT))]
    return sorted(path for path in paths if path.is_file())


def is_generated(path: Path) -> bool:
    return any(part in GENERATED or part.endswith("_cache") or part == ".hypothesis" for part in path.parts)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def tree(path: Path) -> ast.Module:
    """A module's syntax; one entry for each module of the project."""
    return ast.parse(path.read_text(encoding="utf-8"))


FILES: Final = files()
MODULES: Final = [path for path in FILES if path.suffix == ".py"]
PRODUCT: Final = [path for path in MODULES if path.is_relative_to(SRC)]
TESTS: Final = [path for path in MODULES if path.is_relative_to(ROOT / "tests") and path.name.startswith("test_")]
BENCHMARKS: Final = [path for path in (ROOT / "benchmarks").glob("*.py") if not path.name.startswith("_")]
FRAGMENTS: Final = [path for path in (ROOT / "changelog.d").iterdir() if path.suffix == ".md" and path.stem != "README"]
DECISIONS: Final = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))


def test_the_rules_have_something_to_look_at():
    """A rule over an empty list passes without a word; this one does not."""
    assert PRODUCT
    assert TESTS
    assert len(FILES) > len(MODULES)


def test_a_module_fits_in_one_head():
    """One that is longer holds a second noun, which wants a module of its own."""
    lengths = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}

    assert {module: length for module, length in lengths.items() if length > LONGEST} == {}


def test_no_module_or_folder_is_a_drawer():
    """What would go there belongs to the room whose noun it is about."""
    drawers = {name(path): sorted(DRAWERS & {path.stem, *path.relative_to(SRC).parts}) for path in PRODUCT}

    assert {module: found for module, found in drawers.items() if found} == {}


def test_a_module_says_what_it_is_for():
    assert [name(path) for path in MODULES if not ast.get_docstring(tree(path))] == []


def test_a_test_module_tests_something():
    assert [name(path) for path in TESTS if not has_a_test(tree(path))] == []


def has_a_test(module: ast.Module) -> bool:
    """Whether a module has a test function, or a class of tests, such as a state machine's."""
    return any(
        (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"))
        or (isinstance(node, ast.Name) and node.id.startswith("Test"))
        or (isinstance(node, ast.Attribute) and node.attr == "TestCase")
        for node in ast.walk(module)
    )


def test_two_tests_of_a_module_never_share_a_name():
    """The second would silently replace the first."""
    shared = {name(path): sorted(twice(tree(path))) for path in TESTS}

    assert {module: names for module, names in shared.items() if names} == {}


def twice(module: ast.Module) -> set[str]:
    """The names of the tests that stand more than once at a module's top level."""
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    counted = Counter(function.name for function in functions if function.name.startswith("test_"))
    return {test for test, times in counted.items() if times > 1}


def test_two_classes_never_share_a_name():
    """One concept has one name, and two concepts have two (docs/decisions/0020-field-names.md)."""
    modules = [tree(path) for path in PRODUCT]
    counted = Counter(node.name for module in modules for node in ast.walk(module) if isinstance(node, ast.ClassDef))

    assert counted["ReflectorStore"] == 1
    assert {name for name, times in counted.items() if times > 1} == SHARED_CLASS_NAMES


@pytest.mark.parametrize(
    ("source", "tests", "names"),
    [
        pytest.param("def test_a(): ...", True, set(), id="a test"),
        pytest.param("async def test_a(): ...", True, set(), id="an asynchronous test"),
        pytest.param("TestLoop = Machine.TestCase", True, set(), id="a state machine"),
        pytest.param("def check(): ...", False, set(), id="no test"),
        pytest.param("def test_a(): ...\ndef test_a(): ...", True, {"test_a"}, id="a test twice"),
        pytest.param("def test_a(): ...\nasync def test_a(): ...", True, {"test_a"}, id="twice, once asynchronous"),
    ],
)
def test_what_the_rules_for_test_modules_see(source, tests, names):
    assert has_a_test(ast.parse(source)) == tests
    assert twice(ast.parse(source)) == names


def test_unit_tests_mirror_the_rooms():
    """tests/unit/<room>/ tests src/lamina/<room>/; what concerns the whole house lies directly in tests/unit."""
    unit = ROOT / "tests" / "unit"
    folders = {path.parent.relative_to(unit) for path in TESTS if path.is_relative_to(unit)}

    assert sorted(str(folder) for folder in folders if not (SRC / folder).is_dir()) == []


@pytest.mark.parametrize("pattern", [pytest.param(MACHINE_PATH, id="path"), pytest.param(PACKAGE_HOST, id="host")])
def test_no_file_names_one_machine_or_where_packages_come_from(pattern):
    """A checkout works wherever it lies and with whichever package index a person uses."""
    found = []
    for path in FILES:
        if path == Path(__file__).resolve() or path.suffix in {".gz", ".zst", ".png"}:
            continue
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        found += [f"{name(path)}:{number}: {line}" for number, line in enumerate(lines, 1) if pattern.search(line)]

    assert found == []


@pytest.mark.parametrize(
    ("line", "guilty"),
    [
        pytest.param("see /ho" + "me/ada/lamina", True, id="somebody's folder"),
        pytest.param("cd /ro" + "ot/x", True, id="root's folder"),
        pytest.param("GET /api/v1/home/nodes", False, id="a part of an address"),
        pytest.param("the /home of the house", False, id="a word"),
    ],
)
def test_a_machine_path_is_told_from_other_slashes(line, guilty):
    assert bool(MACHINE_PATH.search(line)) == guilty


def test_a_benchmark_can_be_listed_and_run():
    """It states NAME and SUMMARY and has a main."""
    assert [name(path) for path in BENCHMARKS if not runnables.read(path).summary] == []


def test_benchmarks_have_different_names():
    names = [runnable.name for runnable in runnables.find(ROOT / "benchmarks")]

    assert sorted(set(names)) == names


def test_changelog_fragments_are_called_slug_and_kind():
    unclear = [
        path.name for path in FRAGMENTS if not re.fullmatch(rf"[a-z0-9-]+\.({'|'.join(sorted(KINDS))})\.md", path.name)
    ]

    assert unclear == []


def test_a_changelog_fragment_is_a_sentence():
    """It has no bullet: that is added when the changelog is assembled."""
    texts = {path.name: path.read_text(encoding="utf-8").strip() for path in FRAGMENTS}

    assert [each for each, text in texts.items() if not text.endswith((".", "`"))] == []
    assert [each for each, text in texts.items() if text.startswith(("-", "*", "#"))] == []


def test_the_index_of_decisions_lists_every_decision():
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")

    assert [path.name for path in DECISIONS if not re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", path.name)] == []
    assert [path.name for path in DECISIONS if f"({path.name})" not in index] == []


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_the_readme_names_the_two_commands_to_start_with(command):
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_make_target_that_a_document_names_exists():
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {
        target: name(path)
        for path in FILES
        if path.suffix == ".md"
        for target in re.findall(r"`make ([a-z0-9-]+)", path.read_text(encoding="utf-8"))
    }

    assert {target: path for target, path in named.items() if target not in targets} == {}
