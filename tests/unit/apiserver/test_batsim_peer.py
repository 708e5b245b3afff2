"""Decision processes as users name them, and their settings."""

import sys

import pytest

from lamina.apiserver.batsim.batsim_peer import batsim_peer, is_batsim
from lamina.apiserver.batsim.zeromq import ZeromqSocket
from lamina.model.errors import InputError
from lamina.simulator.batsim.batsim_settings import BatsimSettings

SOCKET = ("-s", "{endpoint}")


@pytest.mark.parametrize(
    ("text", "name", "endpoint", "command"),
    [
        pytest.param("batsim:tcp://127.0.0.1:28000", "batsim", "tcp://127.0.0.1:28000", (), id="an address"),
        pytest.param("batsim:ipc:///run/x", "batsim", "ipc:///run/x", (), id="a socket file"),
        pytest.param(
            "batsim:pybatsim easyBackfill",
            "pybatsim easyBackfill",
            "",
            ("pybatsim", "easyBackfill", "-t", "0", *SOCKET),
            id="a known program gets its arguments",
        ),
        pytest.param(
            "batsim: /opt/bin/pybatsim -t 5000 mine.py",
            "pybatsim",
            "",
            ("/opt/bin/pybatsim", "-t", "5000", "mine.py", *SOCKET),
            id="but not those that the user gave",
        ),
        pytest.param(
            "batsim:lamina batsim-scheduler --seed 3",
            "lamina batsim-scheduler",
            "",
            ("lamina", "batsim-scheduler", "--seed", "3", *SOCKET),
            id="Lamina at the other end",
        ),
        pytest.param(
            "batsim:./mine 'a b' --port={port}", "mine a b", "", ("./mine", "a b", "--port={port}"), id="a command"
        ),
        pytest.param(
            "batsim:pybatsim x -s {endpoint}",
            "pybatsim x",
            "",
            ("pybatsim", "x", "-s", "{endpoint}"),
            id="placeholders",
        ),
    ],
)
def test_a_decision_process_is_an_address_or_a_command(text, name, endpoint, command):
    found = batsim_peer(text)

    assert is_batsim(text)
    assert (name, endpoint, command) == (found.name, found.endpoint, found.command)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("batsim:", "names no decision process; write batsim:tcp://127.0.0.1:28000", id="nothing"),
        pytest.param(
            "batsim:tcp://*:28000", "tcp://*:28000 is no address to connect to; write 127.0.0.1", id="all addresses"
        ),
        pytest.param(
            "batsim:./mine", "./mine would not know where to listen; write {endpoint} or {port}", id="no address"
        ),
        pytest.param(
            "batsim:pybatsim x -s tcp://*:1", "omit -s, or write {endpoint} after it", id="an address of the user's"
        ),
        pytest.param(
            "batsim:pybatsim x --socket-endpoint=tcp://*:1", "omit --socket-endpoint=tcp://*:1", id="likewise"
        ),
        pytest.param("batsim:'x", "cannot be read: No closing quotation", id="an open quote"),
    ],
)
def test_a_wrong_decision_process_is_one_mistake(text, told):
    with pytest.raises(InputError) as caught:
        batsim_peer(text)

    assert str(caught.value).startswith(f"--scheduler: {told}"), str(caught.value)


def test_settings_are_those_of_batsim():
    found = batsim_peer(
        "batsim:tcp://h:1",
        ("compute-sharing", "dynamic-jobs", "acknowledge", "forward-profiles", "sched-config=a=b", "timeout=90s"),
    )

    expected = BatsimSettings(
        compute_sharing=True, dynamic_jobs=True, acknowledge=True, forward_profiles=True, sched_config="a=b"
    )
    assert (expected, 90.0) == (found.settings, found.timeout)


def test_a_timeout_of_0_waits_for_ever():
    assert float("inf") == batsim_peer("batsim:tcp://h:1", ("timeout=0",)).timeout


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        pytest.param(["dynamic-job"], "there is no setting 'dynamic-job'; did you mean 'dynamic-jobs'?", id="unknown"),
        pytest.param(
            ["compute-sharing=yes"], "compute-sharing takes no value; write compute-sharing", id="a value too many"
        ),
        pytest.param(["timeout"], "timeout needs a value; write timeout=VALUE", id="no value"),
        pytest.param(["timeout=soon"], "timeout: 'soon' is not a duration; write for example 500ms", id="no duration"),
        pytest.param(
            ["acknowledge"], "acknowledge is about registered jobs; add dynamic-jobs", id="acknowledging nothing"
        ),
    ],
)
def test_a_wrong_setting_is_one_mistake(settings, told):
    with pytest.raises(InputError) as caught:
        batsim_peer("batsim:tcp://h:1", tuple(settings))

    (mistake,) = caught.value.mistakes
    assert str(mistake).startswith(f"--batsim: {told}"), str(mistake)


def test_without_pyzmq_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "zmq", None)

    with pytest.raises(InputError, match=r"--scheduler: pyzmq is not installed: pip install 'lamina\[batsim\]'"):
        ZeromqSocket("REQ", "tcp://127.0.0.1:1", "--scheduler")
