"""What goes wrong between a scheduler and its API server: outages, lost answers, connections that do not last."""

import time
from typing import Any, Final

from testbed import Testbed
from tests.integration.scheduler.live import ACCOUNT, NAMESPACE, Lamina, configuration, install, kubeconfig, until
from tests.integration.scheduler.proxy import Proxy
from tests.integration.scheduler.truth import Arrivals, Witness, add_pods, overcommitted, pod

EACH: Final = 10


def cluster(bed: Testbed, pods: int, spare: int = EACH) -> None:
    """Nodes with hardly more room than *pods* need."""
    install(bed)
    nodes = -(-(pods + spare) // EACH)
    bed.add_nodes([{"name": f"n{number:03}", "cpu": f"{EACH * 100}m"} for number in range(nodes)])


def behind(bed: Testbed, proxy: Proxy, **changes: Any) -> Lamina:
    """A scheduler that reaches the server through *proxy*; *changes* are of its configuration."""
    token = {"token": bed.service_account_token(NAMESPACE, ACCOUNT)}
    access = kubeconfig(bed, bed.folder / "lamina.kubeconfig", token, server=proxy.url)
    return Lamina(bed, access=access, config=configuration(**changes))


def cached(scheduler: Lamina) -> tuple[int, int]:
    """Return how many pods with a node are in the cache, and how many of them are only assumed."""
    counted, assumed = (scheduler.metric(f'scheduler_cache_size{{type="{kind}"}}') for kind in ("pods", "assumed_pods"))
    return int(counted), int(assumed)


def judged(bed: Testbed, witness: Witness, scheduler: Lamina, pods: int) -> dict[str, Any]:
    """What holds at the end of every story, and its figures."""
    until(lambda: cached(scheduler) == (pods, 0), 90.0, f"{pods} pods in the cache, none of them only assumed")
    differences, complaints = scheduler.differences(), scheduler.complaints()
    pods_cached, pods_assumed = cached(scheduler)
    figures = {
        "pods": pods,
        "bound": witness.bound(),
        "moved": len(witness.moved()),
        "overcommitted": overcommitted(bed),
        "differences": len(differences),
        "failed_bindings": sum(one["msg"] == "bind failed" for one in scheduler.said()),
        "relists": int(scheduler.metric("lamina_reflector_relists_total{")),
        "connects": int(scheduler.metric("lamina_reflector_connects_total{")),
        "cached_pods": pods_cached,
        "assumed_pods": pods_assumed,
        "rss_mib": scheduler.rss() >> 20,
    }
    assert [] == complaints
    assert [] == differences, differences[:5]
    assert [] == witness.moved()
    assert [] == figures["overcommitted"], figures
    assert (pods, pods, 0) == (figures["bound"], figures["cached_pods"], figures["assumed_pods"])
    return figures


def outage(bed: Testbed, *, pods: int, away: float) -> dict[str, Any]:
    """The API server is killed in the middle of a burst, its history is compacted, and it comes back."""
    cluster(bed, pods)
    server = bed.parts["kube-apiserver"]
    with Witness(bed) as witness, Lamina(bed) as scheduler:
        arrivals = Arrivals(bed, [pod(f"p{number:04}") for number in range(pods)], over=3.0)
        until(lambda: witness.bound() >= pods // 6, 60.0, "the burst is under way")
        server.kill()
        bound_before, killed_at = witness.bound(), time.monotonic()
        bed.compact_etcd()
        time.sleep(away)
        server.start()
        back_at = time.monotonic()
        arrivals.wait()
        took = until(lambda: witness.bound() == pods, 90.0, f"{pods} pods bound after the outage")
        figures = judged(bed, witness, scheduler, pods)
        # Whatever was waited for, new pods are heard of as before.
        add_pods(bed, [pod("after")])
        heard = until(lambda: witness.bound() == pods + 1, 90.0, "a pod after the outage bound")
    return {
        **figures,
        "bound_before": bound_before,
        "away_s": round(back_at - killed_at, 1),
        "settled_s": round(took, 1),
        "next_pod_s": round(heard, 2),
    }


def answers_lost(bed: Testbed, *, pods: int, share: float, request: str, before: bool = False) -> dict[str, Any]:
    """Connections are cut when the server has done what a request asks for and before anybody hears of it."""
    cluster(bed, pods, spare=0)
    with Proxy(bed) as proxy, Witness(bed) as witness, behind(bed, proxy) as scheduler:
        proxy.lose_share, proxy.lose_answers_to, proxy.lose_requests = share, request, before
        add_pods(bed, [pod(f"p{number:04}") for number in range(pods)])
        took = until(lambda: witness.bound() == pods, 120.0, f"{pods} pods bound although answers are lost")
        proxy.lose_answers_to = ""
        time.sleep(3.0)
        figures = judged(bed, witness, scheduler, pods)
    return {**figures, "lost": proxy.lost, "settled_s": round(took, 1)}


def half_deaf(bed: Testbed, *, room: int, pods: int, deaf_for: float, share: float) -> dict[str, Any]:
    """
    Watches say nothing for a while and answers are lost, those to the scheduler's own questions included.

    More pods come than there is room for, so that room which is given back too early is taken at once.
    """
    cluster(bed, room, spare=0)
    add_pods(bed, [pod(f"p{number:04}") for number in range(pods)])
    # Slowly, so that there is something left to be done when the trouble begins.
    slowly = {"qps": 20, "burst": 1}
    with Proxy(bed) as proxy, Witness(bed) as witness, behind(bed, proxy, clientConnection=slowly) as scheduler:
        until(lambda: witness.bound() >= room // 4, 30.0, "the first pods are bound")
        proxy.lose_share, proxy.lose_answers_to, proxy.hold_watches = share, " HTTP", True
        time.sleep(deaf_for)
        proxy.lose_answers_to, proxy.hold_watches = "", False
        took = until(lambda: witness.bound() >= room, 90.0, f"{room} pods bound")
        time.sleep(5.0)
        differences, complaints = scheduler.differences(), scheduler.complaints()
        figures = {
            "room": room,
            "pods": pods,
            "bound": witness.bound(),
            "moved": len(witness.moved()),
            "overcommitted": overcommitted(bed),
            "differences": len(differences),
            "failed_bindings": sum(one["msg"] == "bind failed" for one in scheduler.said()),
            "lost": proxy.lost,
            "settled_s": round(took, 1),
        }
    assert [] == complaints
    assert [] == differences, differences[:5]
    assert [] == witness.moved()
    assert [] == figures["overcommitted"], figures
    assert room == figures["bound"]
    return figures


def cut_again_and_again(bed: Testbed, *, pods: int, every: float, during: float) -> dict[str, Any]:
    """All connections are reset every few tenths of a second while pods arrive."""
    cluster(bed, pods)
    with Proxy(bed) as proxy, Witness(bed) as witness, behind(bed, proxy) as scheduler:
        arrivals = Arrivals(bed, [pod(f"p{number:04}") for number in range(pods)], over=during * 0.8)
        until_then = time.monotonic() + during
        while time.monotonic() < until_then:
            time.sleep(every)
            proxy.cut()
        bound_meanwhile = witness.bound()
        arrivals.wait()
        took = until(lambda: witness.bound() == pods, 90.0, f"{pods} pods bound after the last cut")
        time.sleep(2.0)
        figures = judged(bed, witness, scheduler, pods)
    return {**figures, "cuts": proxy.cuts, "bound_meanwhile": bound_meanwhile, "settled_s": round(took, 1)}


def conditions_lost(bed: Testbed, *, pods: int, lost: int) -> dict[str, Any]:
    """The first PATCHes of conditions are lost, every one of them, until *lost* were; nothing else changes afterwards."""
    install(bed)
    bed.add_nodes([{"name": "n000", "cpu": "100m"}])
    with Proxy(bed) as proxy, behind(bed, proxy):
        proxy.lose_answers_to, proxy.lose_requests = "/status ", True
        add_pods(bed, [pod(f"p{number:04}", cpu="64") for number in range(pods)])
        until(lambda: proxy.lost >= lost, 60.0, f"{lost} conditions lost")
        before = len(unscheduled(bed))
        proxy.lose_answers_to = ""
        took = until(lambda: len(unscheduled(bed)) == pods, 60.0, f"{pods} conditions written")
    return {"pods": pods, "lost": proxy.lost, "written_before": before, "settled_s": round(took, 1)}


def unscheduled(bed: Testbed) -> list[str]:
    """Name the pods whose condition says that they are not scheduled."""
    return [
        one["metadata"]["name"]
        for one in bed.api("GET", "/api/v1/namespaces/default/pods")["items"]
        for condition in one["status"].get("conditions", ())
        if (condition["type"], condition["status"]) == ("PodScheduled", "False")
    ]
