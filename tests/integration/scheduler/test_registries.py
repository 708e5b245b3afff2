"""Images that no node has ever had: the registry is asked, and nobody waits for one that does not answer."""

import time

import pytest

from tests.e2e._live import make_pod, node_of, until
from tests.integration.scheduler.asking import Shop, bound_within
from tests.integration.scheduler.leading import Terms, leads

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed("kubectl", "registry")]

SMALL = {"cpu": "100m", "memory": "64Mi"}


def test_a_pod_goes_to_the_node_that_has_most_of_an_image_nobody_has_pulled(bed, registry_server):
    shop = Shop(bed, registry_server)
    names = [shop.sell(f"second-{number}") for number in range(4)]
    with shop.scheduler() as lamina:
        for number, name in enumerate(names):
            make_pod(bed, f"p{number}", name, SMALL)
        bound_within(bed, [f"p{number}" for number in range(4)])

        assert [shop.holder] * 4 == [node_of(bed, f"p{number}") for number in range(4)]
        assert [] == lamina.complaints()
        assert 4 == lamina.metric('lamina_images_resolved_total{reason="found",source="registry"}')
        assert 4 == lamina.metric("lamina_pod_held_seconds_count")
        assert 0 == lamina.metric("lamina_pods_held")
        assert [] == lamina.differences()
        page = lamina.page("/metrics")[1]
        assert registry_server.host not in page
        assert "shop-" not in page


def test_a_registry_that_does_not_answer_delays_pods_up_to_the_deadline_and_one_that_is_dead_soon_nobody(
    bed, registry_server
):
    shop = Shop(bed, registry_server)
    names = [shop.sell(f"app-{number}") for number in range(8)]
    with shop.scheduler("--registry-deadline", "1") as lamina:
        registry_server.program.pause()
        try:
            began = time.monotonic()
            make_pod(bed, "slow", names[0], SMALL)
            bound_within(bed, ["slow"])
            assert 1.0 <= time.monotonic() - began < 3.0
        finally:
            registry_server.program.resume()
        registry_server.program.kill()
        try:
            # Nobody listens: each question is answered at once, and after some of them none is asked.
            for number in range(1, 7):
                make_pod(bed, f"dead-{number}", names[number], SMALL)
            bound_within(bed, [f"dead-{number}" for number in range(1, 7)])
            held = lamina.metric("lamina_pod_held_seconds_sum")
            began = time.monotonic()
            make_pod(bed, "last", names[7], SMALL)
            bound_within(bed, ["last"])
            assert time.monotonic() - began < 0.9
            assert lamina.metric("lamina_pod_held_seconds_sum") - held < 0.1
        finally:
            registry_server.program.start()
        assert [] == lamina.complaints()


def test_what_came_too_late_for_one_pod_helps_the_next(bed, registry_server):
    shop = Shop(bed, registry_server)
    late = shop.sell("late")
    with shop.scheduler("--registry-deadline", "0.5") as lamina:
        registry_server.program.pause()
        try:
            make_pod(bed, "p1", late, SMALL)
            bound_within(bed, ["p1"])
        finally:
            registry_server.program.resume()
        asked = 'lamina_images_resolved_total{reason="found",source="registry"}'
        until("the answer comes", lambda: lamina.metric(asked) or None)
        make_pod(bed, "p2", late, SMALL)

        assert shop.holder == until("p2 is bound", lambda: node_of(bed, "p2"))


def test_pods_that_wait_when_a_scheduler_starts_are_looked_up_too(bed, registry_server):
    shop = Shop(bed, registry_server)
    make_pod(bed, "p1", shop.sell("early"), SMALL)
    with shop.scheduler():
        assert shop.holder == until("p1 is bound", lambda: node_of(bed, "p1"))


def test_who_may_ask_nobody_asks_nobody(bed, registry_server):
    shop = Shop(bed, registry_server)
    name = shop.sell("unasked")
    before = len(registry_server.requests("lamina"))
    scheduler = shop.scheduler()
    scheduler.command = [one for one in scheduler.command if one not in ("--registries", str(shop.rules()))]
    scheduler.command += ["--no-registries"]
    with scheduler as lamina:
        make_pod(bed, "p1", name, SMALL)
        bound_within(bed, ["p1"])
        assert "lamina_registry_requests" not in lamina.page("/metrics")[1]
    assert before == len(registry_server.requests("lamina"))


def test_only_who_leads_asks_and_who_takes_over_asks_for_those_who_wait(bed, registry_server):
    shop = Shop(bed, registry_server)
    election = Terms(lease=5, renew=3, retry=1).election()
    first, second = (shop.scheduler(name=name, leaderElection=election) for name in ("first", "second"))
    asked = "lamina_registry_requests_total"
    with first:
        until("the first leads", lambda: leads(first) or None)
        with second:
            make_pod(bed, "p1", shop.sell("one"), SMALL)
            bound_within(bed, ["p1"])
            assert (3, 0) == (first.metric(f'{asked}{{outcome="requests"}}'), second.metric(asked))
            first.kill()
            # It waits until somebody leads again, who has seen it before and asked nobody.
            make_pod(bed, "p2", shop.sell("two"), SMALL)
            assert shop.holder == until("p2 is bound", lambda: node_of(bed, "p2"))
            assert 1 == second.metric('lamina_images_resolved_total{reason="found",source="registry"}')
            assert [] == second.complaints()
