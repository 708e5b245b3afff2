"""Exec plugins: what they are told, what they may answer, and how often they are run."""

import asyncio
import contextlib
import json
import os
import sys
from typing import Any

import pytest

from lamina.clients.kube.credentials import NoCredentialError
from lamina.clients.kube.exec_command import ExecCommand
from lamina.clients.kube.exec_plugin import ExecPlugin, ExecTimings
from tests.unit.clients.kube.kubeconfigs import CANARY, Clock, client_certificate

V1 = "client.authentication.k8s.io/v1"
CERTIFICATE, KEY = (part.decode() for part in client_certificate())


def answer(version=V1, **status) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


class Program:
    """A plugin that prints what a file says, and counts."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "plugin"
        self.path.write_text(
            f"#!{sys.executable} -S\n"
            "import os, sys, pathlib\n"
            f"here = pathlib.Path({str(folder)!r})\n"
            "(here / 'told').write_text(os.environ['KUBERNETES_EXEC_INFO'] + '|' + '|'.join(sys.argv[1:]))\n"
            "(here / 'runs').open('a').write('x')\n"
            "exec((here / 'script').read_text())\n"
        )
        self.path.chmod(0o755)
        self.does("")

    def does(self, script: str) -> None:
        (self.folder / "script").write_text(script)

    def prints(self, text: str) -> None:
        self.does(f"print({text!r})")

    @property
    def runs(self) -> int:
        return len((self.folder / "runs").read_text()) if (self.folder / "runs").exists() else 0

    @property
    def told(self) -> tuple[dict[str, Any], list[str]]:
        info, *arguments = (self.folder / "told").read_text().split("|")
        return json.loads(info), arguments


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


@pytest.fixture
def plugin(program, clock):
    def make(timings=ExecTimings(), **parts) -> ExecPlugin:  # noqa: B008  frozen
        command = ExecCommand(**{"version": V1, "program": str(program.path), "place": "config: exec", **parts})
        return ExecPlugin(command, timings=timings, clock=clock, wall=lambda: 0.0)

    return make


async def problem(plugin) -> str:
    with pytest.raises(NoCredentialError) as caught:
        await plugin.authorization()
    return str(caught.value)


def at(seconds: float) -> str:
    return f"1970-01-01T00:{int(seconds) // 60:02d}:{int(seconds) % 60:02d}Z"


# ------------------------------------------------------------------------------------------------- what is said to it


@pytest.mark.parametrize("version", [V1, "client.authentication.k8s.io/v1beta1"])
async def test_a_plugin_is_told_its_version_and_that_nobody_is_there(plugin, program, version):
    program.prints(answer(version, token="t"))

    assert "Bearer t" == await plugin(version=version, arguments=("a", "b c")).authorization()
    told = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    assert (told, ["a", "b c"]) == program.told


async def test_a_plugin_that_wants_to_know_is_told_of_the_cluster(plugin, program):
    program.prints(answer(token="t"))
    await plugin(cluster={"server": "https://x"}).authorization()

    assert {"interactive": False, "cluster": {"server": "https://x"}} == program.told[0]["spec"]


async def test_variables_are_added_to_our_own(plugin, program, monkeypatch):
    monkeypatch.setenv("OURS", "1")
    program.does(f"print({answer(token='OURS' + 'THEIRS')!r}.replace('OURS', os.environ['OURS'])"
                 ".replace('THEIRS', os.environ['THEIRS']))")  # fmt: skip

    assert "Bearer 12" == await plugin(environment={"THEIRS": "2"}).authorization()


async def test_a_certificate_may_come_instead_of_a_token(plugin, program):
    program.prints(answer(clientCertificateData=CERTIFICATE, clientKeyData=KEY))
    asked = plugin()

    assert "" == await asked.authorization()
    assert (CERTIFICATE.encode(), KEY.encode()) == asked.pair()


# -------------------------------------------------------------------------------------------------- when it is run


async def test_a_credential_without_an_end_is_asked_for_once(plugin, program, clock):
    program.prints(answer(token="t"))
    asked = plugin()
    for _ in range(5):
        await asked.authorization()
        clock.pass_by(1e6)

    assert 1 == program.runs


async def test_requests_at_the_same_time_share_one_run(plugin, program):
    program.does(f"import time; time.sleep(0.1); print({answer(token='t')!r})")
    asked = plugin()

    assert ["Bearer t"] * 20 == await asyncio.gather(*(asked.authorization() for _ in range(20)))
    assert 1 == program.runs


async def test_one_that_gives_up_waiting_does_not_end_the_run_for_the_others(plugin, program):
    program.does(f"import time; time.sleep(0.2); print({answer(token='t')!r})")
    asked = plugin()
    hasty, patient = (asyncio.create_task(asked.authorization()) for _ in range(2))
    while not program.runs:
        await asyncio.sleep(0.01)
    hasty.cancel()

    assert "Bearer t" == await patient
    assert 1 == program.runs


async def test_a_credential_is_renewed_early_while_it_is_still_in_use(plugin, program, clock):
    """It lives for 600 s; 60 s before the end there is a new one, and nobody has waited for it."""
    program.prints(answer(token="first", expirationTimestamp=at(600)))
    asked = plugin()
    await asked.authorization()
    program.prints(answer(token="second"))

    clock.pass_by(539)
    assert ("Bearer first", 1) == (await asked.authorization(), program.runs)

    clock.pass_by(1)
    assert "Bearer first" == await asked.authorization()
    await asked._task
    assert ("Bearer second", 2) == (await asked.authorization(), program.runs)


async def test_what_is_good_stays_in_use_while_the_plugin_fails_until_it_expires(plugin, program, clock):
    program.prints(answer(token="first", expirationTimestamp=at(100)))
    asked = plugin()
    await asked.authorization()
    program.does("sys.exit(1)")

    clock.pass_by(99)
    await asked.authorization()
    await asked._task
    assert "Bearer first" == await asked.authorization()

    clock.pass_by(1)
    assert "it ended with exit code 1" in await problem(asked)


async def test_a_plugin_that_fails_is_left_alone_for_longer_and_longer(plugin, program, clock):
    """Runs at 0, 1, 3, 7, 15, 31, 63, 123 s: waits double up to a minute."""
    program.does("sys.exit(1)")
    asked = plugin()
    ran = []
    for second in range(130):
        before = asked.runs
        await problem(asked)
        ran += [second] * (asked.runs - before)
        clock.pass_by(1)

    assert [0, 1, 3, 7, 15, 31, 63, 123] == ran
    assert asked.runs == asked.troubles == program.runs


async def test_after_a_success_failures_start_from_the_beginning(plugin, program, clock):
    program.does("sys.exit(1)")
    asked = plugin()
    for _ in range(8):
        await problem(asked)
        clock.pass_by(60)
    program.prints(answer(token="t", expirationTimestamp=at(10)))
    await asked.authorization()
    program.does("sys.exit(1)")
    clock.pass_by(10)
    await problem(asked)
    before = asked.runs
    clock.pass_by(1)
    await problem(asked)

    assert 1 == asked.runs - before


async def test_what_the_server_refuses_is_not_used_again(plugin, program, clock):
    program.prints(answer(token="first"))
    asked = plugin()
    await asked.authorization()
    clock.pass_by(60)
    program.prints(answer(token="second"))
    asked.refused("Bearer first")

    assert "Bearer second" == await asked.authorization()


async def test_a_late_refusal_of_an_older_credential_does_not_count(plugin, program, clock):
    program.prints(answer(token="first"))
    asked = plugin()
    await asked.authorization()
    clock.pass_by(60)
    program.prints(answer(token="second"))
    asked.refused(None)
    await asked.authorization()
    asked.refused("Bearer first")
    asked.refused(None)

    assert ("Bearer second", 2) == (await asked.authorization(), program.runs)


async def test_a_plugin_whose_credentials_are_always_refused_is_not_run_in_a_loop(plugin, program, clock):
    """Runs at 0, 1, 3, 7, … as for one that fails: 10 in five minutes, and never two within a second."""
    program.prints(answer(token="bad"))
    asked = plugin()
    for _ in range(3000):
        with contextlib.suppress(NoCredentialError):
            asked.refused(await asked.authorization())
        clock.pass_by(0.1)

    assert 10 == asked.runs
    assert "the server rejects its credentials" in await problem(asked)


# --------------------------------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("sys.exit(3)", "it ended with exit code 3 (config: exec)", id="exit code"),
        pytest.param("print('no login', file=sys.stderr); sys.exit(1)", "exit code 1: no login", id="its last words"),
        pytest.param(f"print('{CANARY}', file=sys.stderr); sys.exit(1)", "exit code 1: [...]", id="a secret in them"),
        pytest.param(f"print('{CANARY}')", "its output is not an ExecCredential in JSON", id="no JSON"),
        pytest.param(f"print('{answer(token=5)}')", "its output is not an ExecCredential", id="a number"),
        pytest.param(
            f"print('{answer('v2', token=CANARY)}')", f"its output is not of version {V1}; update it", id="version"
        ),
        pytest.param(f"print('{answer()}')", "it printed neither a token nor a certificate", id="nothing"),
        pytest.param(f"print('{answer(clientKeyData=CANARY, token='t')}')", "or a key without a certificate", id="key"),
        pytest.param(f"print({answer(token=CANARY + chr(10) + 'x')!r})", "the token has characters that", id="lines"),
        pytest.param(
            f"print('{answer(clientCertificateData='x', clientKeyData=CANARY)}')",
            "and its key are unusable",
            id="PEM",
        ),
        pytest.param(
            f"print('{answer(token=CANARY, expirationTimestamp=at(0))}')", "has already expired", id="expired"
        ),
        pytest.param("print('x' * (2 << 20))", "it printed more than 1024 KiB", id="too much"),
        pytest.param("import time; time.sleep(60)", "no output within 0.5 s", id="too slow"),
        pytest.param("import os; os.kill(os.getpid(), 9)", "it ended with exit code -9", id="killed"),
    ],
)
async def test_what_goes_wrong_is_told_in_one_line_without_a_secret(plugin, program, caplog, script, expected):
    program.does(script)
    line = await problem(plugin(ExecTimings(patience=0.5)))

    assert expected in line
    assert "\n" not in line
    assert CANARY not in line + str([vars(record) for record in caplog.records])


async def test_a_program_that_is_not_there_is_told_with_its_hint(plugin):
    line = await problem(plugin(program="no-such-program-here", hint="get it\nfrom \x1b[1mus"))

    assert "the program was not found: get it from [1mus (config: exec)" in line


async def test_a_program_that_cannot_be_executed_is_told(plugin, program):
    program.path.chmod(0o644)

    assert "cannot be executed; check its permissions" in await problem(plugin())


async def test_the_children_of_a_plugin_that_hangs_end_with_it(plugin, program):
    program.does(
        "import subprocess, time\n"
        "child = subprocess.Popen(['sleep', '3600'])\n"
        "(here / 'child').write_text(str(child.pid))\n"
        "time.sleep(60)"
    )
    await problem(plugin(ExecTimings(patience=1.0)))
    child = int((program.folder / "child").read_text())
    while is_running(child):
        await asyncio.sleep(0.02)


async def test_a_plugin_that_leaves_its_output_open_to_another_is_not_waited_for(plugin, program):
    program.does(
        f"import subprocess\nsubprocess.Popen(['sleep', '3'], start_new_session=True)\nprint({answer(token='t')!r})"
    )

    assert "no output within 0.5 s" in await problem(plugin(ExecTimings(patience=0.5)))


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_no_secret_is_in_a_repr(plugin, program):
    program.prints(answer(token=CANARY, clientCertificateData=CERTIFICATE, clientKeyData=KEY))
    asked = plugin(environment={"SECRET": CANARY}, arguments=(CANARY,))
    await asked.authorization()

    shown = repr(vars(asked))
    assert CANARY not in shown
    assert "PRIVATE" not in shown
    assert os.environ.get("SECRET") is None
