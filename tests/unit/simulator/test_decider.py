"""Anybody who answers events with commands can decide in a run."""

import random
from collections.abc import Sequence

import pytest

from lamina.model.errors import WiringError
from lamina.model.events import Event, NodeSeen, PodSeen
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.contract.commands import Bind, Command
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.decider import LoopDecider
from lamina.simulator.run import simulate
from lamina.testing import a_node, a_pod
from tests.unit.simulator.test_run import a_node_spec, a_scenario, arriving, placed


class LastNode:
    """Puts everything on the node it heard of last."""

    names = ("last", "other")
    trying = False
    asked_until = None
    attempts = 0

    def __init__(self) -> None:
        self.node = ""

    def feed(self, *happened: Event) -> Sequence[Command]:
        commands: list[Command] = []
        for event in happened:
            if isinstance(event, NodeSeen):
                self.node = event.node.name
            elif isinstance(event, PodSeen) and not event.pod.node_name:
                commands.append(Bind(event.pod, self.node))
        return commands


def test_a_decider_of_ones_own_needs_no_configuration():
    scenario = a_scenario(
        [a_node_spec("n1"), a_node_spec("n2")], [arriving(1.0, "p", cpu=2), arriving(2.0, "q", cpu=2)]
    )
    result = simulate(scenario, decider=LastNode())

    assert {"p": "n2", "q": "n2"} == placed(result)
    assert [(0.0, 0.0), (0.0, 0.0)] == [(pod.queue, pod.decision) for pod in result.pods]
    assert 2 == result.attempts


def test_pods_get_the_first_name_and_those_of_other_schedulers_are_told_so():
    pods = [arriving(0.0, "any"), arriving(0.0, "other", scheduler="other"), arriving(0.0, "lost", scheduler="third")]

    class Deaf(LastNode):
        def feed(self, *happened: Event) -> Sequence[Command]:
            return ()

    result = simulate(a_scenario([a_node_spec("n1")], pods), decider=Deaf())

    assert ["", "", "no profile of this configuration is called 'third'"] == [pod.message for pod in result.pods]


def test_somebody_has_to_decide():
    with pytest.raises(WiringError, match="a configuration or a decider"):
        simulate(a_scenario([], []))


def test_a_loop_is_a_decider():
    loop = Loop(named("kube-default", registry()).profiles, random.Random(0).randrange)
    decider = LoopDecider(loop)

    assert (tuple(loop.profiles), 0, False) == (decider.names, decider.attempts, decider.trying)
    pod = a_pod("p", scheduler=next(iter(decider.names)))
    commands = decider.feed(NodeSeen(a_node("n1")), PodSeen(pod))
    assert [("p", "n1")] == [(command.pod.name, command.node) for command in commands if isinstance(command, Bind)]
    assert (1, True) == (decider.attempts, decider.trying)
