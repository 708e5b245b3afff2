"""
A scheduler process with extenders in Go, which decode and encode with Go's JSON and kube-scheduler's own types.

The story `foreign-extender` compares all of it with kube-scheduler.
"""

import pytest

from tests.integration.scheduler import extended
from tests.integration.scheduler.extended import LAMINA, scheduling
from tests.integration.scheduler.go_extender import GoExtender, for_good, now
from tests.integration.scheduler.live import install

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed("foreign-extender", alone=False)]


def test_extenders_in_go_refuse_prefer_and_bind(bed):
    install(bed)
    managing = {"managedResources": [{"name": extended.SLOTS, "ignoredByScheduler": True}], "bindVerb": "bind"}
    with (
        GoExtender(bed, tls=True) as power,
        GoExtender(bed, "slots", prefix=extended.SLOTS_PREFIX) as slots,
    ):
        extended.prepare(bed, power, slots)
        with scheduling(bed, LAMINA, "go", power.entry(), slots.entry(nodeCacheCapable=True, **managing)):
            found = extended.filled(bed, power)
            assert 1.0 == extended.preferred(found)
            assert found["late, refused"].startswith(
                f"0/6 nodes are available: 1 {now()}, 1 {for_good()}, 4 Insufficient cpu."
            )
            assert "n0" == found["late, free"]
            extended.clear(bed)
            assert {
                "slot-0": "n4, by the extender",
                "slot-1": "n4, by the extender",
                "slot-2": "n3, by the extender",
                "plain": "n2",
            } == extended.managed(bed, slots)
            extended.clear(bed)
            assert {"patient, down": "SchedulerError", "patient, up": "n2"} == extended.down(bed, power)
