"""Nothing of a testbed outlives it: no process, no folder, however it ends."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from testbed import Testbed, leftovers
from tests.integration.testbed.waiting import eventually

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
# Starts a testbed, says where, and waits to be treated badly.
DRIVER = """
import sys, time
from testbed import Testbed
with Testbed.start() as bed:
    print(bed.site.mark, bed.folder, flush=True)
    {then}
"""


def drive(then):
    """A process of its own with a testbed; the mark and the folder it told."""
    code = DRIVER.format(then=then)
    driver = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    mark, folder = driver.stdout.readline().split()
    return driver, mark, Path(folder)


def count(mark):
    return sum(1 for _ in leftovers.members(mark))


def is_gone(mark, folder):
    return not count(mark) and not folder.exists()


def test_an_exception_in_the_block_ends_everything(bed_factory):
    bed = bed_factory()
    assert count(bed.site.mark) == 2

    with pytest.raises(ZeroDivisionError), bed:
        1 / 0  # noqa: B018 - the exception is the point

    assert is_gone(bed.site.mark, bed.folder)
    bed.stop()  # a second time does nothing


@pytest.mark.parametrize(
    ("number", "members"),
    [
        # By SIGKILL nothing of the driver can act any more, by SIGTERM nothing of it does.
        pytest.param(signal.SIGKILL, 2, id="killed"),
        pytest.param(signal.SIGTERM, 2, id="terminated"),
        pytest.param(signal.SIGINT, 2, id="interrupted"),
    ],
)
@pytest.mark.usefixtures("control_plane")  # or there is nothing to start
def test_a_driver_that_dies_takes_everything_with_it(number, members):
    driver, mark, folder = drive("time.sleep(600)")
    with driver:
        assert count(mark) == members

        driver.send_signal(number)

    assert eventually(lambda: is_gone(mark, folder))


@pytest.mark.usefixtures("control_plane")
def test_paused_parts_end_with_their_driver():
    driver, mark, folder = drive("bed.parts['etcd'].pause(); print(flush=True); time.sleep(600)")
    with driver:
        driver.stdout.readline()
        driver.kill()

    assert eventually(lambda: is_gone(mark, folder))


@pytest.mark.usefixtures("control_plane")
def test_a_testbed_outlives_the_thread_that_started_it():
    """What belongs to a process must not hang on one of its threads."""
    beds = []
    thread = threading.Thread(target=lambda: beds.append(Testbed.start()))
    thread.start()
    thread.join()

    with beds[0] as bed:
        assert bed.api("GET", "/version")["gitVersion"] == "v1.36.3"


def test_a_process_of_somebody_else_is_no_member():
    """The same number with another mark, or none, is left alone."""
    with subprocess.Popen(["sleep", "600"], env={**os.environ, leftovers.MARK: "theirs"}) as sleeper:
        try:
            leftovers.end("ours")
            assert sleeper.poll() is None
            assert [pid for pid, _ in leftovers.members("theirs")] == [sleeper.pid]
        finally:
            leftovers.end("theirs")

    assert sleeper.returncode == -signal.SIGKILL


def test_what_a_member_started_is_a_member_even_with_an_environment_of_its_own():
    script = "env -i sleep 600 & wait"
    with subprocess.Popen(["sh", "-c", script], env={**os.environ, leftovers.MARK: "family"}):
        assert eventually(lambda: count("family") == 2)

        leftovers.end("family")

        assert count("family") == 0


def test_a_process_name_may_hold_any_character(tmp_path):
    """The kernel's line about a process has its name in the middle."""
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "600"]) as sleeper:
        try:
            assert leftovers.parent_of(sleeper.pid) == os.getpid()
        finally:
            sleeper.kill()
    assert leftovers.started(sleeper.pid) is None
