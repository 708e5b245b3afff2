"""
The rules of tests/conftest.py, tried on a small suite of its own.

The suite is run as a person runs it, and what depends on it once more as CI does, each time in a process of its own;
the tests below read what became of its members.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = ROOT / "tests" / "conftest.py"

WRITES = "def test_it(tmp_path):\n    (tmp_path / 'note').write_text('x')\n"
NEEDS = "import pytest\n@pytest.mark.needs({})\ndef test_it():\n    pass\n"

SUITE = {
    "unit/model/test_write.py": WRITES,
    "unit/cli/test_write.py": WRITES,
    "unit/layers/test_socket.py": "import socket\ndef test_it():\n    socket.socket()\n",
    "unit/scheduling/test_process.py": "import subprocess\ndef test_it():\n    subprocess.run(['true'])\n",
    "unit/scheduling/loop/test_swallow.py": """
def test_it(tmp_path):
    try:
        open(tmp_path / "note", "a")
    except AssertionError:
        pass
""",
    "unit/scheduling/test_read.py": "def test_it():\n    open(__file__).close()\n",
    "unit/scheduling/test_import.py": "def test_it():\n    import colorsys\n",
    "unit/scheduling/test_law.py": """
from hypothesis import given, strategies as st
@given(st.text(alphabet='ab'))
def test_it(text):
    pass
""",
    "unit/wire/test_program.py": NEEDS.format("'sh'"),
    "unit/wire/test_module.py": NEEDS.format("'json', 'sh'"),
    "unit/wire/test_missing.py": NEEDS.format("'sh', 'no-such-program'"),
    "unit/wire/test_optional.py": NEEDS.format("'no-such-program', ci=False"),
    "unit/wire/test_of_root.py": "import os\nos.geteuid = lambda: 1000\n" + NEEDS.format("'sh', root=True"),
}


def outcomes(folder: Path, part: str, ci: bool) -> dict[str, tuple[str, str]]:
    """Run a part of the suite; for each of its modules what became of it, and in which words."""
    for name, body in {**SUITE, "pytest.ini": "[pytest]\nmarkers = needs: as in pyproject.toml\n"}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")
    shutil.copy(CONFTEST, folder)
    environment = {key: value for key, value in os.environ.items() if key != "CI" and not key.startswith("PYTEST")}
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "--junitxml=outcome.xml", part],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT)} | ({"CI": "true"} if ci else {}),
        stdout=subprocess.DEVNULL,
        check=False,
    )
    found: dict[str, tuple[str, str]] = {}
    for case in ElementTree.parse(folder / "outcome.xml").iter("testcase"):
        bad = next(iter(case), None)
        outcome = (bad.tag, bad.get("message", "")) if bad is not None else ("passed", "")
        # A test that fails and whose fixture then fails too is listed twice; the first listing is the test's own.
        found.setdefault(case.get("classname", "").replace(".", "/") + ".py", outcome)
    return found


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory):
    return outcomes(tmp_path_factory.mktemp("by_hand"), "unit", ci=False)


@pytest.fixture(scope="module")
def in_ci(tmp_path_factory):
    return outcomes(tmp_path_factory.mktemp("in_ci"), "unit/wire", ci=True)


pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("unit/model/test_write.py", "note for writing", id="write a file"),
        pytest.param("unit/scheduling/loop/test_swallow.py", "note for writing", id="write a file and hush it up"),
        pytest.param("unit/layers/test_socket.py", "used the network", id="open a socket"),
        pytest.param("unit/scheduling/test_process.py", "started a process", id="start a process"),
    ],
)
def test_a_test_of_a_pure_room_may_not(by_hand, name, words):
    outcome, message = by_hand[name]

    assert outcome in {"failure", "error"}
    assert words in message


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("unit/scheduling/test_read.py", id="read a file"),
        pytest.param("unit/scheduling/test_import.py", id="import"),
        pytest.param("unit/scheduling/test_law.py", id="use hypothesis"),
    ],
)
def test_a_test_of_a_pure_room_may(by_hand, name):
    assert by_hand[name] == ("passed", "")


def test_other_rooms_may_write(by_hand):
    assert by_hand["unit/cli/test_write.py"] == ("passed", "")


@pytest.mark.parametrize("part", ["program", "module"])
def test_a_test_runs_when_what_it_needs_is_there(by_hand, in_ci, part):
    assert by_hand[f"unit/wire/test_{part}.py"] == ("passed", "")
    assert in_ci[f"unit/wire/test_{part}.py"] == ("passed", "")


def test_a_missing_part_skips_by_hand_and_fails_in_ci(by_hand, in_ci):
    assert by_hand["unit/wire/test_missing.py"] == ("skipped", "needs no-such-program")
    assert in_ci["unit/wire/test_missing.py"][0] in {"failure", "error"}
    assert "needs no-such-program, which CI has to install" in in_ci["unit/wire/test_missing.py"][1]


def test_what_ci_does_not_install_is_skipped_there_too(in_ci):
    assert in_ci["unit/wire/test_optional.py"] == ("skipped", "needs no-such-program")


def test_what_only_root_can_have_is_skipped_for_others_in_ci_too(in_ci):
    assert in_ci["unit/wire/test_of_root.py"] == ("skipped", "needs root for sh")


def test_the_suite_was_run_as_a_whole(by_hand):
    assert set(by_hand) == set(SUITE)


# ------------------------------------------------------------------------------------------- under a shell that ignores

SIGNALS = """
import os, signal, subprocess, sys
SAYS = "import signal; print(*(signal.getsignal(each) in {signal.SIG_DFL, signal.default_int_handler} for each in %s))"
def test_it():
    said = subprocess.run([sys.executable, "-c", SAYS % "(2, 3)"], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["True", "True"]
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGQUIT)
"""


def ignoring(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest from a shell that ignores what a terminal sends, as one does for what runs in the background."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    return subprocess.run(
        ["sh", "-c", """trap '' INT QUIT; exec "$@" """, "sh", *command],
        cwd=folder,
        env=environment | {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("jobs", [pytest.param("0", id="in one process"), pytest.param("1", id="in a process beside")])
def test_children_hear_what_the_shell_ignores_and_the_tests_themselves_do_not(tmp_path, jobs):
    (tmp_path / "test_signals.py").write_text(SIGNALS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    shutil.copy(CONFTEST, tmp_path)

    ran = ignoring(tmp_path, "--import-mode=importlib", "-n", jobs)

    assert ran.returncode == 0, ran.stdout


@pytest.mark.realtime
def test_a_test_of_ctrl_c_passes_under_a_shell_that_ignores_it():
    case = "tests/e2e/test_compare_command.py::test_no_process_outlives_the_command[Ctrl-C]"

    ran = ignoring(ROOT, case)

    assert (0, True) == (ran.returncode, "1 passed" in ran.stdout), ran.stdout
