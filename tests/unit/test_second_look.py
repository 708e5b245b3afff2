"""
What CI makes of tests that fail: tests/realtime.py and scripts/run_tests.py, tried on small suites of their own.

Each suite runs in processes of its own, as CI runs the real one.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import realtime, time_spent

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

# Of tests/conftest.py only what matters here; the tests that run side by side have all of it.
CONFTEST = """
from tests import realtime
def pytest_configure(config):
    realtime.register(config)
"""
HEAD = """
import os
import pathlib
import pytest

def runs(name):
    '''How often this was asked for *name*, in all processes, this time included.'''
    with open(pathlib.Path(__file__).parent / name, 'a+') as notes:
        notes.write('x')
        notes.seek(0)
        return len(notes.read())
"""
GOOD = "def test_good():\n    assert runs('good') == 1\n"
FLAKY = "@pytest.mark.realtime\ndef test_flaky_{0}():\n    assert runs('flaky {0}') > 1\n"
BROKEN = "@pytest.mark.realtime\ndef test_broken():\n    assert not runs('broken')\n"
UNMARKED = "def test_unmarked():\n    assert runs('unmarked') > 1\n"
PARAMETERS = """
@pytest.mark.realtime
@pytest.mark.parametrize('what', ['a b', 'c::d', '[e]'])
def test_flaky(what):
    assert what != 'c::d' or runs('parameter') > 1
"""
NESTED = """
@pytest.mark.realtime
def test_nested():
    assert not [name for name in os.environ if name in {'LAMINA_FAILED_TO', 'LAMINA_SECOND_LOOK'}]
    assert runs('nested') > 1
"""
IN_SETUP = """
@pytest.fixture
def late():
    assert runs('late') > 1

@pytest.mark.realtime
def test_late(late):
    pass
"""
SKIPPED_THEN = """
@pytest.mark.realtime
def test_skipped():
    if runs('skipped') > 1:
        pytest.skip('not today')
    assert False
"""
CRASHED = "@pytest.mark.realtime\ndef test_crashed():\n    if runs('crashed') == 1:\n        os._exit(3)\n"


class Ran(NamedTuple):
    """What CI would see."""

    code: int
    flaky: list[str]
    """What was printed as FLAKY."""
    pytests: int
    """How often pytest ran."""
    last: str
    """The last line."""
    everything: str


def run(folder: Path, *parts: str, ci: bool = True, jobs: str = "0") -> Ran:
    """Run a suite of one module through the script."""
    (folder / "tests").mkdir()
    (folder / "tests" / "test_small.py").write_text(HEAD + "\n".join(parts), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    realtime: as in pyproject.toml\n", encoding="utf-8")
    if jobs == "0":
        (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    else:
        shutil.copy(ROOT / "tests" / "conftest.py", folder)
    code = f"import sys, pathlib, run_tests; sys.exit(run_tests.main(sys.argv[1:], pathlib.Path({str(folder)!r})))"
    environment = {key: value for key, value in os.environ.items() if key != "CI" and not key.startswith("PYTEST")}
    environment |= {"PYTHONPATH": f"{ROOT / 'scripts'}:{ROOT}"} | ({"CI": "true"} if ci else {})
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist"}  # the others take a second
    done = subprocess.run(
        [sys.executable, "-c", code, "--import-mode=importlib", "-p", "no:cacheprovider", "-n", jobs, "tests"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    flaky = [line.removeprefix("FLAKY tests/test_small.py::") for line in lines if line.startswith("FLAKY ")]
    return Ran(done.returncode, flaky, done.stdout.count("test session starts"), lines[-1], done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("parts", "code", "flaky", "pytests"),
    [
        pytest.param([GOOD], 0, [], 1, id="nothing fails"),
        pytest.param([GOOD, FLAKY.format(1)], 0, ["test_flaky_1"], 2, id="a flaky one"),
        pytest.param([FLAKY.format(1), FLAKY.format(2)], 0, ["test_flaky_1", "test_flaky_2"], 2, id="two flaky ones"),
        pytest.param([FLAKY.format(number) for number in (1, 2, 3)], 1, [], 1, id="three flaky ones"),
        pytest.param([GOOD, BROKEN], 1, [], 2, id="one that fails twice"),
        pytest.param([FLAKY.format(1), BROKEN], 1, ["test_flaky_1"], 2, id="a flaky one, and one that fails twice"),
        pytest.param([GOOD, UNMARKED], 1, [], 1, id="one without the marker"),
        pytest.param([FLAKY.format(1), UNMARKED], 1, [], 1, id="a flaky one, and one without the marker"),
        pytest.param([PARAMETERS], 0, ["test_flaky[c::d]"], 2, id="one case of a table"),
        pytest.param([NESTED], 0, ["test_nested"], 2, id="one that does not learn that it is looked at twice"),
        pytest.param([IN_SETUP], 0, ["test_late"], 2, id="one that fails while it is set up"),
        pytest.param([SKIPPED_THEN], 1, [], 2, id="one that is skipped the second time"),
        pytest.param([FLAKY.format(1), "def broken(:"], 2, [], 1, id="a module that cannot be read"),
    ],
)
def test_what_ci_makes_of(tmp_path, parts, code, flaky, pytests):
    ran = run(tmp_path, *parts)

    assert (code, flaky, pytests) == (ran.code, ran.flaky, ran.pytests), ran.everything
    assert re.fullmatch(r"=+ .*(passed|failed|skipped|error).* in [\d.]+s.* =+", ran.last), "pytest has the last word"


@pytest.mark.parametrize(
    ("part", "code", "flaky", "pytests"),
    [
        pytest.param(FLAKY.format(1), 0, ["test_flaky_1"], 2, id="a flaky test"),
        pytest.param(UNMARKED, 1, [], 1, id="a test without the marker"),
        pytest.param(CRASHED, 1, [], 1, id="a test whose process dies, which is no matter of time"),
    ],
)
def test_it_is_the_same_with_processes_side_by_side(tmp_path, part, code, flaky, pytests):
    ran = run(tmp_path, GOOD, part, jobs="2")

    assert (code, flaky, pytests) == (ran.code, ran.flaky, ran.pytests), ran.everything


def test_a_person_sees_every_failure_at_once(tmp_path):
    ran = run(tmp_path, FLAKY.format(1), ci=False)

    assert (1, [], 1) == (ran.code, ran.flaky, ran.pytests)


def test_ci_says_where_the_time_went(tmp_path):
    ran = run(tmp_path, GOOD, "def test_also_good():\n    pass\n", jobs="1")

    assert re.search(r"seconds  tests  where the time went\n +\d+      2  tests\n", ran.everything), ran.everything


@pytest.mark.parametrize(
    ("nodeid", "folder"),
    [
        ("tests/unit/clients/kube/test_leader_election.py::test_it[a/b::c]", "tests/unit/clients"),
        ("tests/property/test_laws.py::test_it", "tests/property"),
        ("test_it.py::test_it", ""),
    ],
)
def test_the_time_of_a_test_is_that_of_its_folder(nodeid, folder):
    assert folder == time_spent.folder(nodeid)


@pytest.mark.needs("make")
@pytest.mark.parametrize(
    ("words", "command"),
    [
        pytest.param(["test"], r"scripts/run_tests\.py -n 3 --dist worksteal", id="tests look twice"),
        pytest.param(["soak"], r'-m "soak or hypothesis or fuzz"', id="soak"),
        pytest.param(["soak", "LAWS=1"], r'-m "hypothesis and not fuzz"', id="only the laws"),
    ],
)
def test_what_make_runs(words, command):
    told = subprocess.run(
        ["make", "--dry-run", "JOBS=3", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout

    assert re.search(command, told), told


def test_what_was_never_written_is_not_read(tmp_path):
    assert realtime.read(tmp_path / "nothing") is None
