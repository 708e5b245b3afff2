"""
The law of recordings: whenever a loop is written down as data and made anew from it, the new one goes on as the old one.

Both are fed the rest of the history; every command is the same, and so are the ties that are broken and the times at which
the loop asks to be woken. The histories are those of the other laws: the loop machine's, those of simulated clusters
(controllers, pulls, measured use, failing nodes) under every profile that comes with Lamina, and those of crowded
clusters whose pods have every kind of rule.
"""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from lamina.layers.inventory import Inventory, InventorySnapshot
from lamina.model import events
from lamina.model.events import Event
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.contract.commands import Bind, Command
from lamina.scheduling.loop.loop import Loop
from lamina.simulator.decider import LoopDecider
from lamina.simulator.run import simulate
from lamina.testing import a_loop
from tests.property.layer_histories import ASKED, OPENING, STEP, STEPS, Pair
from tests.property.machine_plugins import PLUGINS, Volume
from tests.property.simulated_scenarios import PROFILES, REGISTRY, scenarios, wild
from tests.property.test_evaluation_laws import Change, Watcher, beginnings, histories, shapes
from tests.property.test_loop_machine import IMAGES, SCHEDULES, Cluster
from tests.property.test_usage_laws import SPECS
from tests.property.twin_loops import Twins

pytestmark = pytest.mark.slow


class Recorded(Cluster):
    """The loop machine, whose loop has a twin made from a snapshot now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.twins = Twins(lambda pick: a_loop(PLUGINS, pick=pick))
        # Instead of the loop that the constructor has made and fed.
        self.loop = self.twins.loop
        self.loop.feed(events.ImagesLearned(tuple(IMAGES)))
        self.feed_one = self.loop.feed
        self.loop.feed = self.twins_feed  # type: ignore[method-assign]

    def twins_feed(self, *happened: Event) -> list[Command]:
        self.loop.feed = self.feed_one  # type: ignore[method-assign]
        try:
            return self.twins.feed(*happened)
        finally:
            self.loop.feed = self.twins_feed  # type: ignore[method-assign]

    def take(self, *happened: Event) -> None:
        self.twins.take(*happened)

    # Commands that are not handed out yet, because another instance leads, are no part of a snapshot.
    @precondition(lambda self: self.nodes and self.leads)
    @rule()
    def cut(self) -> None:
        """Write the loop down and make another from it; what a plugin keeps to itself is handed over as it is."""
        second = self.twins.cut()
        _volume(second).reserved = dict(_volume(self.loop).reserved)

    def teardown(self) -> None:
        super().teardown()
        if not self.broken:
            self.twins.finish()


def _volume(loop: Loop) -> Volume:
    found = loop.profiles["default-scheduler"].plugins["Volume"]
    assert isinstance(found, Volume)
    return found


@pytest.mark.hypothesis
@pytest.mark.timeout(0)
def test_a_loop_made_from_a_snapshot_goes_on_as_the_first_under_any_schedule_of_events() -> None:
    """Pods wait, back off, are held by permits and are on their way while the snapshot is taken."""
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Recorded,
        settings=settings(
            max_examples=max(SCHEDULES // 4, 1),
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# GangScheduling and Backfill have state that a snapshot lacks, as `what_is_lost` says.
COMPLETE = PROFILES.filter(lambda name: name not in {"gang", "drf", "easy", "conservative"})


class CutDecider(LoopDecider):
    """A loop that is written down and made anew every so many feeds."""

    def __init__(self, twins: Twins, every: int) -> None:
        super().__init__(twins.loop)
        self._twins = twins
        self._every = every
        self._fed = 0
        self.feed = self._feed_both

    def _feed_both(self, *happened: Event) -> list[Command]:
        self._fed += 1
        if self._fed % self._every == 0:
            self._twins.cut()
        return self._twins.feed(*happened)


@given(scenarios() | wild(), st.none() | SPECS, COMPLETE, st.integers(1, 30), st.integers(0, 3))
def test_a_simulated_cluster_is_decided_alike_by_a_loop_made_from_a_snapshot(scenario, usage, profile, every, seed):
    """Layers, pulls on their way, measured use and controllers, under every profile whose snapshots are complete."""
    configuration = named(profile, REGISTRY)
    twins = Twins(lambda pick: Loop(configuration.profiles, pick), random.Random(seed))
    simulate(msgspec.structs.replace(scenario, usage=usage).under(profile), seed=seed, decider=CutDecider(twins, every))
    twins.finish()


CROWDED = (
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "InterPodAffinity",
    "PodTopologySpread",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "LayerLocality",
    "DefaultBinder",
)


@given(beginnings, histories, st.lists(shapes, min_size=2, max_size=4), st.integers(1, 12), st.integers(0, 5))
def test_crowded_clusters_are_decided_alike_by_a_loop_made_from_a_snapshot(beginning, history, asked, every, seed):
    """Pods with ports, spreads, selectors and pods that keep others away; rows that are given to other nodes."""
    twins = Twins(lambda pick: a_loop(CROWDED, pick=pick), random.Random(seed))
    watcher = Watcher(twins.loop, asked)
    twins.feed(*(events.NodeSeen(node) for node in beginning))
    for number, (story, confirms) in enumerate(history):
        if number % every == 0:
            twins.cut()
        pod: Pod = msgspec.structs.replace(asked[number % len(asked)], uid=PodUid(f"a{number}"), name=f"a{number}")
        commands = twins.feed(events.TimePassed(number * 1.5), events.PodSeen(pod))
        for command in commands if confirms else ():
            if isinstance(command, Bind):
                twins.feed(events.BindDone(command.pod.uid))
        for happened in story:
            twins.feed(*(watcher.news(happened) if isinstance(happened, Change) else (happened,)))
    twins.finish()


class CutPair(Pair):
    """An inventory that is written down and made anew before every step, and its model."""

    def step(self, kind: str, *arguments: Any) -> None:
        data = msgspec.msgpack.encode(self.inventory.snapshot())
        self.inventory = Inventory()
        self.inventory.restore(msgspec.msgpack.decode(data, type=InventorySnapshot))
        self.kept = [self.inventory.index.want(self.images(names)) for names in ASKED]
        super().step(kind, *arguments)


@given(st.booleans(), st.lists(STEP, max_size=STEPS))
def test_an_inventory_made_from_a_snapshot_answers_as_the_oracle_does(opened, steps):
    """Reports that came early, names that expire, images that are not known yet, rows that were given back."""
    pair = CutPair()
    for step in [*(OPENING if opened else ()), *steps]:
        pair.step(*step)
    pair.finish()
