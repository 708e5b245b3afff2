"""
What holds for every test: hypothesis profiles, parts a test needs, and silence in the rooms that decide.

- Profiles: `steady` (the default: the same examples in every run) and `soak` (`make soak`: many, and new ones).
- `@pytest.mark.needs("skopeo")`: skipped where it is missing; in CI, which installs it, that is a failure.
- `@pytest.mark.needs("containerd", root=True)`: for root only, who alone could install and use it; skipped elsewhere.
- `@pytest.mark.realtime`: waits for real programs or reads the real clock; CI looks at a failure twice (tests/realtime.py).
- A shell may have told this process to ignore Ctrl-C. It still does, and the programs that tests start do not.
- Tests under tests/unit/{model,layers,qos,scheduling} may open no socket, start no process and write no file. The import
  contracts forbid the modules one would do it with; this catches the rest, such as a plain open().
"""

import importlib.util
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

from tests import realtime
from tests.time_spent import TimeSpent

HERE: Final = Path(__file__).resolve().parent
IN_CI: Final = os.environ.get("CI", "").lower() in {"true", "1"}

# No deadlines: how long one example takes is the machine's affair, and `timeout` catches what hangs. The same examples
# in every run, so that a red test is the change's doing and not the dice's; `make soak` is where dice are thrown.
settings.register_profile("steady", deadline=None, print_blob=True, derandomize=True)
# LAMINA_EXAMPLES=1000 makes a soak of an hour out of one of half a day.
settings.register_profile(
    "soak",
    deadline=None,
    print_blob=True,
    max_examples=int(os.environ.get("LAMINA_EXAMPLES", "5000")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")


def pytest_configure(config: pytest.Config) -> None:
    """Let CI look twice at tests that need real time, and say where the time went."""
    realtime.register(config)
    if IN_CI and not hasattr(config, "workerinput"):
        config.pluginmanager.register(TimeSpent(), "time spent")


# -------------------------------------------------------------------------------------------- signals of child processes

# A program started inherits which signals are ignored, and a shell ignores SIGINT for what it runs in the background. A signal
# that has a handler is at its default in the program started, so: a handler that does as little as ignoring does.
# Worker processes are programs started too: a variable tells them what this one was told.
DEAF_TO: Final = "LAMINA_TESTS_DEAF_TO"
for ignored in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(ignored) == signal.SIG_IGN or ignored.name in os.environ.get(DEAF_TO, "").split():
        signal.signal(ignored, lambda number, frame: None)
        os.environ[DEAF_TO] = f"{os.environ.get(DEAF_TO, '')} {ignored.name}"


# ------------------------------------------------------------------------------------------ parts that may be missing


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose parts are missing, or fail it where they should have been installed."""
    for mark in item.iter_markers("needs"):
        if mark.kwargs.get("root", False) and os.geteuid() != 0:
            pytest.skip(f"needs root for {', '.join(mark.args) or 'what it does'}")
        missing = [name for name in mark.args if not present(name)]
        if not missing:
            continue
        words = f"needs {', '.join(missing)}"
        if IN_CI and mark.kwargs.get("ci", True):
            pytest.fail(f"{words}, which CI has to install", pytrace=False)
        pytest.skip(words)


def present(name: str) -> bool:
    """Whether *name* is a program on the PATH or a Python module."""
    if shutil.which(name) is not None:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the package that would hold it is missing
        return False


# --------------------------------------------------------------------------------------- silence in rooms that decide

PURE: Final = tuple(HERE / "unit" / room for room in ("model", "rows", "layers", "qos", "scheduling"))
WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# The tools' own notes: compiled modules, hypothesis's examples, pytest's cache.
NOTES: Final = {"__pycache__", ".hypothesis", ".pytest_cache"}
PROCESSES: Final = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork"}


class NotPureError(AssertionError):
    """Code that only decides reached for the outside world."""


class Watch:
    """Listens to the interpreter's audit events while a test of a pure room runs."""

    def __init__(self) -> None:
        self.listening = False
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Refuse what a pure room must not do, and remember it in case somebody swallows the refusal."""
        if not self.listening:
            return
        deed = offence(event, arguments)
        if deed:
            self.seen.append(deed)
            raise NotPureError(f"a test of a pure room {deed}")


def offence(event: str, arguments: tuple[Any, ...]) -> str | None:
    """What an audit event amounts to; None when it is harmless."""
    if event.startswith("socket."):
        return f"used the network ({event})"
    if event in PROCESSES:
        return f"started a process ({event})"
    if event == "open":
        path, _, flags = arguments
        harmless = isinstance(path, int) or not flags & WRITING or is_note(path)
        return None if harmless else f"opened {os.fsdecode(path)} for writing"
    return None


def is_note(path: str | bytes | os.PathLike[str]) -> bool:
    """Whether a file belongs to the tools that run the tests."""
    return os.fsdecode(path) == os.devnull or not NOTES.isdisjoint(Path(os.fsdecode(path)).parts)


WATCH: Final = Watch()
# An audit hook cannot be removed again, so there is one, and it listens only when told to.
sys.addaudithook(WATCH)


@pytest.fixture(autouse=True)
def no_outside_world(request: pytest.FixtureRequest) -> Iterator[None]:
    """Forbid sockets, processes and written files in tests of the rooms that decide."""
    if not any(room in request.path.parents for room in PURE):
        yield
        return
    WATCH.seen.clear()
    WATCH.listening = True
    try:
        yield
    finally:
        WATCH.listening = False
    if WATCH.seen:
        pytest.fail(f"a test of a pure room {'; '.join(WATCH.seen)}", pytrace=False)
