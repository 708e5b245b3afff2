"""`lamina batsim-scheduler` asked by a player of Batsim's side, and by `lamina simulate`."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zmq

from tests.batsim_player import PlayedJob, Player
from tests.unit.simulator.batsim.harness import a_delay, a_story

pytestmark = pytest.mark.realtime

SECONDS = 120


def lamina(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lamina", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=folder)


@contextmanager
def a_server(*options: str) -> Iterator[tuple[subprocess.Popen[str], zmq.Socket[bytes]]]:
    """A `lamina batsim-scheduler` on a free port, and a socket that asks it."""
    command = [sys.executable, "-m", "lamina", "batsim-scheduler", "-s", "tcp://127.0.0.1:*", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process, zmq.Context() as context:
        try:
            assert process.stderr is not None
            listens = process.stderr.readline()
            assert "listens at" in listens, listens
            with context.socket(zmq.REQ) as socket:
                socket.setsockopt(zmq.LINGER, 0)
                socket.setsockopt(zmq.RCVTIMEO, SECONDS * 1000)
                socket.connect(listens.split()[-1])
                yield process, socket
        finally:
            process.kill()


def told(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    text = process.stderr.read()
    process.wait(SECONDS)
    return text


def test_a_player_of_batsims_side_plays_a_workload_to_its_end():
    jobs = [PlayedJob("a", 0.0, 2, 10.0), PlayedJob("b", 1.0, 3, 5.0, walltime=4.0), PlayedJob("c", 2.0, 1, 1.0)]
    with a_server("--profile", "kube-default") as (process, socket):

        def answer(request: bytes) -> bytes:
            socket.send(request)
            return socket.recv()

        player = Player(4, answer)
        found = player.play(jobs)
        last = told(process)

    assert {"a": 0.0, "b": 10.0, "c": 2.0} == {name: one.started for name, one in found.items()}
    assert (f"the simulation has ended after {len(player.log)} messages\n", 0) == (last, process.returncode)


def test_an_invalid_message_of_the_simulator_is_one_line_and_exit_code_1():
    with a_server() as (process, socket):
        socket.send(b'{"now": 0, "events": [{"timestamp": 0, "type": "LUNCH", "data": {}}]}')
        last = told(process)

    assert ("message 1 of the simulator: events[0].type: Invalid value 'LUNCH'\n", 1) == (last, process.returncode)


def test_a_simulator_that_falls_silent_is_given_up():
    with a_server("--timeout", "300ms") as (process, socket):

        def stop_after_the_first(request: bytes) -> bytes:
            socket.send(request)
            answer = socket.recv()
            raise StopIteration(answer)

        with pytest.raises(StopIteration):
            Player(1, stop_after_the_first).play([])
        last = told(process)

    assert "the simulator sent nothing for 0.3 s after message 1; is it still running?\n" == last
    assert 1 == process.returncode


def test_both_ends_of_lamina_over_the_wire_equal_the_run_without_it(tmp_path):
    profiles = {"small": a_delay(7.0, cpu=0.5), "large": a_delay(11.0, cpu=1.5, memory="1Gi")}
    listed = [{"subtime": number // 2, "profile": "small" if number % 3 else "large"} for number in range(14)]
    a_story(tmp_path, *listed, hosts=3, cpu=2, profiles=profiles)
    wire = f"batsim:{sys.executable} -m lamina batsim-scheduler --profile kube-default -s {{endpoint}}"

    over = ["--scheduler", wire, "--batsim", "compute-sharing", "--out", "over"]
    for words in (over, ["--profile", "kube-default", "--out", "alone"]):
        done = lamina("simulate", "scenario.yaml", *words, folder=tmp_path)
        assert 0 == done.returncode, done.stderr

    for name in ("jobs.csv", "schedule.csv", "machine_states.csv"):
        assert (tmp_path / "over" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes(), name


def test_a_run_that_is_stopped_writes_its_results_and_exits_with_1(tmp_path):
    a_story(tmp_path, {}, {"subtime": 20})
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, zmq\nsocket = zmq.Context().socket(zmq.REP)\nsocket.bind(sys.argv[1])\n"
        "socket.recv()\nsocket.send(b'{\"now\": 0, \"events\": []}')\nsocket.recv()\nsocket.send(b'never')\n"
    )

    done = lamina(
        "simulate",
        "scenario.yaml",
        "--scheduler",
        f"batsim:{sys.executable} {program} {{endpoint}}",
        "--out",
        "out",
        "--decisions",
        "run.messages",
        folder=tmp_path,
    )
    again = lamina("simulate", "scenario.yaml", "--replay", "run.messages", "--out", "again", folder=tmp_path)

    expected = "reply 2 at 0 s: is not JSON: JSON is malformed: invalid character (byte 4); it begins with 'never'"
    assert (1, expected) == (done.returncode, done.stderr.strip().splitlines()[-1])
    assert (1, expected) == (again.returncode, again.stderr.strip().splitlines()[-1])
    names = ("jobs.csv", "schedule.csv", "machine_states.csv", "summary.json", "trace.jsonl.zst")
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name
