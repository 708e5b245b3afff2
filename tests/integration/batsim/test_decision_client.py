"""Decision processes over ZeroMQ: honest, silent, broken and dead ones, started by Lamina or attached."""

import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import zmq

from lamina.apiserver.batsim.batsim_peer import batsim_peer
from lamina.apiserver.batsim.batsim_run import BatsimRun
from lamina.model.errors import InputError
from lamina.simulator.run import simulate
from lamina.simulator.run.batsim_files import jobs
from tests.unit.simulator.batsim.harness import LowestFirst, a_story

pytestmark = pytest.mark.realtime

PROGRAM = """
import json, sys, zmq
socket = zmq.Context().socket(zmq.REP)
socket.bind(sys.argv[1])
number = 0
while True:
    message = json.loads(socket.recv())
    number += 1
    now, events = message["now"], []
    for event in message["events"]:
        if event["type"] == "JOB_SUBMITTED":
            data = {"job_id": event["data"]["job_id"], "alloc": "0"}
            events.append({"timestamp": now, "type": "EXECUTE_JOB", "data": data})
    reply = json.dumps({"now": now, "events": events}).encode()
    BEHAVIOUR
    socket.send(reply)
    if any(event["type"] == "SIMULATION_ENDS" for event in message["events"]):
        break
"""


def a_program(folder: Path, behaviour: str = "pass") -> str:
    """The command of a decision process that executes each job on host 0, and then behaves as told."""
    path = folder / "program.py"
    path.write_text(PROGRAM.replace("BEHAVIOUR", behaviour))
    return f"batsim:{sys.executable} {path} {{endpoint}}"


def run(scenario, command, *settings):
    with BatsimRun(batsim_peer(command, settings), scenario) as running:
        return simulate(scenario, decider=running.make_decider, latency=running.latency)


def test_a_program_is_started_asked_and_ended(tmp_path):
    scenario = a_story(tmp_path, {}, {"subtime": 20})

    result = run(scenario, a_program(tmp_path))

    assert "" == result.stopped
    assert [(0.0, 10.0), (20.0, 30.0)] == [(one.started, one.ended) for one in jobs(result, scenario)]


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        pytest.param(
            "if number == 3: sys.exit('out of ideas')",
            "message 3: python.* ended with status 1 before it answered; its last line: 'out of ideas'",
            id="a program that ends",
        ),
        pytest.param(
            "if number == 3: import time; time.sleep(600)",
            "message 3: python.* did not answer within 3 s",
            id="a program that is silent",
        ),
        pytest.param("if number == 3: reply = b'{'", "reply 3 at 10 s: is not JSON", id="bad JSON"),
        pytest.param(
            "if number == 3: reply = b'x' * 10_000_000", "reply 3 at 10 s: is 10000000 bytes long", id="ten megabytes"
        ),
    ],
)
def test_what_was_done_before_a_program_fails_is_kept(tmp_path, behaviour, told):
    scenario = a_story(tmp_path, {}, {"subtime": 20})

    result = run(scenario, a_program(tmp_path, behaviour), "timeout=3s")

    assert re.match(told, result.stopped), result.stopped
    assert 10.0 == jobs(result, scenario)[0].ended


@pytest.mark.parametrize(
    ("command", "told"),
    [
        pytest.param("batsim:no-such-program {port}", "cannot start no-such-program", id="no program"),
        pytest.param("batsim:false {port}", "false {port} ended with status 1 before it answered", id="ends at once"),
        pytest.param("batsim:sleep 60 {port}", "sleep 60 did not answer within 0.2 s", id="never listens"),
        pytest.param(
            "batsim:tcp://127.0.0.1:1", "did not answer within 0.2 s at tcp://127.0.0.1:1; is it running", id="no peer"
        ),
        pytest.param("batsim:tcp://nowhere", "cannot connect to tcp://nowhere: Invalid argument", id="no address"),
    ],
)
def test_a_run_that_never_began_has_no_result(tmp_path, monkeypatch, command, told):
    monkeypatch.setattr("lamina.apiserver.batsim.decision_client.START_SECONDS", 0.2)
    scenario = a_story(tmp_path, {})

    with pytest.raises(InputError) as caught:
        run(scenario, command, "timeout=200ms")

    assert told in str(caught.value)


def test_an_attached_decision_process_is_asked_where_it_listens(tmp_path):
    scenario = a_story(tmp_path, {"res": 2}, {"subtime": 3, "res": 3})
    context = zmq.Context()
    socket = context.socket(zmq.REP)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    heard: list[str] = []

    def answer() -> None:
        scheduler = LowestFirst(4)
        while "SIMULATION_ENDS" not in heard:
            message = json.loads(socket.recv())
            heard.extend(event["type"] for event in message["events"])
            events = [{"timestamp": message["now"], "type": kind, "data": data} for kind, data in scheduler(message)]
            socket.send_string(json.dumps({"now": message["now"], "events": events}))

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        result = run(scenario, f"batsim:tcp://127.0.0.1:{port}")
    finally:
        thread.join(timeout=60)
        socket.close()
        context.term()

    assert [(0.0, 10.0), (10.0, 20.0)] == [(one.started, one.ended) for one in jobs(result, scenario)]
    assert ["SIMULATION_BEGINS", "SIMULATION_ENDS"] == [heard[0], heard[-1]]


def test_an_interrupted_run_says_so_in_one_line_and_stops_its_program(tmp_path):
    a_story(tmp_path, {})
    mark = tmp_path / "started"
    program = tmp_path / "program.py"
    program.write_text("import pathlib, sys, time\npathlib.Path(sys.argv[2]).write_text('x')\ntime.sleep(600)\n")
    command = [sys.executable, "-m", "lamina", "simulate", "scenario.yaml"]
    scheduler = f"batsim:{sys.executable} {program} {{endpoint}} {mark}"
    with subprocess.Popen(
        [*command, "--scheduler", scheduler], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        while not mark.exists():
            assert process.poll() is None
            threading.Event().wait(0.05)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)

    assert ("interrupted: no file was written", 130) == (told.strip(), process.returncode)
