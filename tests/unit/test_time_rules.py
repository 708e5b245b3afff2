"""
No test depends on how quick the machine is, unless it says so with the marker `realtime`.

CI runs a failed test with that marker once more (tests/realtime.py), so the marker has to be where it is needed, and an
assertion about seconds has to be nowhere else. tests/clocks.py says what counts as depending on time.
"""

import ast
from pathlib import Path
from typing import Final

import pytest

from tests import clocks

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final = sorted((ROOT / "tests").rglob("test_*.py"))

# Modules that may read a clock or rest without the marker.
EXCUSED: Final = {
    "tests/fuzz/test_fuzz.py": "processor time says when to end; an input is slow at a hundred times the usual, thrice",
    "tests/fuzz/test_linear.py": "its helper measures processor time, and only tests under the marker call it",
    "tests/unit/clients/cri/containerd/test_containerd_source.py": "tells a fake runtime the time of day; ten minutes do not matter",
    "tests/unit/clients/cri/storage/test_source_changes.py": "rests while nothing may happen: no machine is too slow for it",
}
# Modules of tests/integration that wait for no program.
IMMEDIATE: Final[dict[str, str]] = {}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_a_test_that_depends_on_real_time_says_so():
    offenders = {
        name(path): [f"line {place.line}: {place.what}" for place in clocks.found(path.read_text(encoding="utf-8"))]
        for path in TESTS
        if name(path) not in EXCUSED
    }

    assert {module: places for module, places in offenders.items() if places} == {}


def test_tests_against_real_programs_say_so():
    """They wait for what others do, if only in a helper."""
    integration = [path for path in TESTS if path.is_relative_to(ROOT / "tests" / "integration")]
    unmarked = [name(path) for path in integration if not clocks.marks_whole_module(path.read_text(encoding="utf-8"))]

    assert sorted(set(unmarked) - set(IMMEDIATE)) == []


def test_an_excuse_is_needed_for_as_long_as_it_stands():
    assert [module for module in EXCUSED if not clocks.found((ROOT / module).read_text(encoding="utf-8"))] == []
    assert [module for module in IMMEDIATE if not (ROOT / module).is_file()] == []


def test_clocks_are_read_by_their_full_name():
    """Or this rule would not see them."""
    offenders = [
        f"{name(path)}:{node.lineno}"
        for path in TESTS
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (
            (node.module == "time" and {alias.name for alias in node.names} & {*clocks.CLOCKS, "sleep"})
            or (node.module == "asyncio" and "sleep" in {alias.name for alias in node.names})
        )
    ]

    assert offenders == []


MARKED = "@pytest.mark.realtime\n"
BUSY = "def test_it():\n    began = time.perf_counter()\n    assert time.perf_counter() - began < 1\n"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        pytest.param(BUSY, [2, 3], id="a duration"),
        pytest.param(MARKED + BUSY, [], id="a duration, under the marker"),
        pytest.param("pytestmark = pytest.mark.realtime\n" + BUSY, [], id="a duration, in a marked module"),
        pytest.param("pytestmark = [pytest.mark.slow, pytest.mark.realtime]\n" + BUSY, [], id="one mark of several"),
        pytest.param("pytestmark = pytest.mark.slow\n" + BUSY, [3, 4], id="a duration, in a module marked otherwise"),
        pytest.param("def test_it():\n    time.sleep(1)\n", [2], id="a rest"),
        pytest.param("async def test_it():\n    await asyncio.sleep(1)\n", [2], id="an asynchronous rest"),
        pytest.param("async def test_it():\n    await asyncio.sleep(PAUSE)\n", [2], id="a rest of unknown length"),
        pytest.param("async def test_it():\n    await asyncio.sleep(0)\n", [], id="no rest at all"),
        pytest.param("async def stub():\n    await asyncio.sleep(60)\n", [], id="for ever"),
        pytest.param("def helper():\n    while not done():\n        time.sleep(1)\n", [], id="until something is so"),
        pytest.param(
            "def helper():\n    while time.monotonic() < end:\n        time.sleep(1)\n",
            [2, 3],
            id="until a time has come",
        ),
        pytest.param(
            "def test_it():\n    while busy():\n        def stub():\n            time.sleep(1)\n", [4], id="in a stub"
        ),
        pytest.param(
            "async def story():\n    await asyncio.sleep(5)\ndef test_it():\n    leaping(story())\n",
            [],
            id="on a loop that leaps",
        ),
        pytest.param("def test_it():\n    leaping(1)\n    time.sleep(5)\n", [3], id="beside a loop that leaps"),
    ],
)
def test_what_depends_on_real_time(source, lines):
    assert lines == [place.line for place in clocks.found(source)]
