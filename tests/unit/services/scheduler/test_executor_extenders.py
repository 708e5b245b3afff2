"""Bindings by an extender: what it reports is checked against the API server."""

import msgspec
import pytest

from lamina.model.events import BindDone, BindFailed
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import AskExtenders
from lamina.services.scheduler.executor import NOT_LEADING
from lamina.testing import a_pod
from tests.unit.services.fakes import ScriptedClient
from tests.unit.services.scheduler.test_executor import Bench, a_bind, served


class OneExtender:
    """An extender that answers binds as configured, and records the pods of its requests."""

    def __init__(self, problem: str = "", *, ignorable: bool = False) -> None:
        self.problem, self.ignorable = problem, ignorable
        self.asked: list[str] = []

    def ask(self, command: AskExtenders) -> None:
        self.asked.append(f"ask {command.pod.name}")

    async def bind(self, extender: str, pod: Pod, node: str) -> str:
        self.asked.append(f"{extender} bind {pod.name} to {node}")
        return self.problem

    def ignores(self, extender: str) -> bool:
        return self.ignorable


@pytest.mark.parametrize(
    ("extender", "script", "asked", "answer"),
    [
        pytest.param(OneExtender(), [served(node="n1")], ["GET p1"], BindDone("p1"), id="bound"),
        pytest.param(
            OneExtender("timeout"), [served(node="n1")], ["GET p1"], BindDone("p1"), id="bound although the call failed"
        ),
        pytest.param(
            OneExtender("no device"), [served()], ["GET p1"], BindFailed("p1", "no device"), id="failed and not bound"
        ),
        pytest.param(
            OneExtender(),
            [served()],
            ["GET p1"],
            BindFailed("p1", "the extender reported success, but the pod is not bound"),
            id="reported as bound, and it is not",
        ),
        pytest.param(
            OneExtender("no device", ignorable=True),
            [served(), b"{}"],
            ["GET p1", "POST binding"],
            BindDone("p1"),
            id="ignorable, and bound by the executor",
        ),
    ],
)
def test_an_extender_binds_and_the_api_server_decides_whether_it_did(extender, script, asked, answer):
    command = msgspec.structs.replace(a_bind(), extender="http://a")

    bench = Bench(ScriptedClient(*script)).do(command, extenders=extender)

    assert ["http://a bind p1 to n1"] == extender.asked
    assert asked == bench.client.short
    assert answer == bench.answer


def test_an_extender_binds_nothing_for_an_instance_that_does_not_lead():
    extender = OneExtender()

    bench = Bench(ScriptedClient(), may_act=lambda: False).do(
        msgspec.structs.replace(a_bind(), extender="http://a"), extenders=extender
    )

    assert [] == extender.asked
    assert BindFailed("p1", NOT_LEADING) == bench.answer


def test_questions_for_extenders_are_passed_on():
    extender = OneExtender()

    Bench(ScriptedClient()).do(AskExtenders(a_pod(), 1, 1, ("n1",), ("http://a",)), extenders=extender)

    assert ["ask p1"] == extender.asked
