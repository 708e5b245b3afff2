"""A scheduler that is asked to stop in the middle of a burst, and one that is asked what it believes."""

import json
import signal
import time
from typing import Any

from testbed import Testbed
from tests.integration.scheduler.faults import cluster
from tests.integration.scheduler.live import Lamina, configuration, until
from tests.integration.scheduler.truth import Witness, add_pods, overcommitted, pod

STOPS_WITHIN = 15.0


def stopped(bed: Testbed, *, pods: int, qps: int) -> dict[str, Any]:
    """Stop one in the middle of a burst; the next one finishes it, and neither has done anything by halves."""
    cluster(bed, pods)
    add_pods(bed, [pod(f"p{number:04}") for number in range(pods)])
    slowly = configuration(clientConnection={"qps": qps, "burst": qps})
    first = Lamina(bed, "first", config=slowly)
    with Witness(bed) as witness:
        with first:
            until(lambda: witness.bound() >= pods // 10, 30.0, "the burst is under way")
            first.signal(signal.SIGUSR2)
            time.sleep(0.2)
            code, took = first.end(STOPS_WITHIN)
        time.sleep(1.0)
        bound = witness.bound()
        told = len(first.bindings())
        with Lamina(bed, "second") as second:
            began = second.rss()
            until(lambda: witness.bound() == pods, 60.0, f"{pods} pods bound by the second")
            time.sleep(2.0)
            differences = second.differences()
            rss = second.rss()
            twice, took_twice = second.end(STOPS_WITHIN)
    dumps = [one["msg"] for one in first.said() if one["msg"].startswith("state dump: ")]
    believed = json.loads(dumps[0].partition(": ")[2])
    figures = {
        "pods": pods,
        "bound_by_first": bound,
        "told_by_first": told,
        "not_finished": sum("bindings not finished" in one["msg"] for one in first.said()),
        "exit_codes": [code, twice],
        "stopped_s": [round(took, 2), round(took_twice, 2)],
        "dump": {key: believed[key] for key in ("nodes", "pods", "assumed", "queue")},
        "moved": len(witness.moved()),
        "overcommitted": overcommitted(bed),
        "differences": len(differences),
        "rss_mib": [began >> 20, rss >> 20],
    }
    assert [] == first.complaints() + second.complaints()
    assert [0, 0] == figures["exit_codes"]
    assert bound == told, "what was bound was also heard of"
    assert 0 < bound < pods, "it was stopped in the middle"
    assert ([], [], []) == (witness.moved(), figures["overcommitted"], differences)
    return figures


def stopped_without_a_server(bed: Testbed, *, pods: int) -> dict[str, Any]:
    """Stop one whose bindings are on their way to a server that has just died."""
    cluster(bed, pods)
    add_pods(bed, [pod(f"p{number:04}") for number in range(pods)])
    config = configuration(clientConnection={"qps": 40, "burst": 20})
    with Lamina(bed, config=config) as scheduler:
        until(lambda: len(scheduler.bindings()) >= pods // 10, 30.0, "the burst is under way")
        bed.parts["kube-apiserver"].kill()
        time.sleep(0.5)
        code, took = scheduler.end(STOPS_WITHIN)
        bed.parts["kube-apiserver"].start()
    figures = {"exit_code": code, "stopped_s": round(took, 2), "complaints": scheduler.complaints()}
    assert (0, []) == (code, scheduler.complaints())
    return figures


def stopped_twice(bed: Testbed) -> dict[str, Any]:
    """Asked a second time, a scheduler stops at once, and does not call that a success."""
    cluster(bed, 200)
    add_pods(bed, [pod(f"p{number:04}") for number in range(200)])
    # So slow that what has been decided takes longer than anybody waits.
    with Lamina(bed, config=configuration(clientConnection={"qps": 1, "burst": 1})) as scheduler:
        until(lambda: len(scheduler.bindings()) >= 2, 30.0, "something is bound")
        scheduler.signal(signal.SIGTERM)
        time.sleep(1.0)
        code, took = scheduler.end(STOPS_WITHIN)
    return {"exit_code": code, "stopped_s": round(took, 2), "complaints": scheduler.complaints()}


def stopped_with_a_queue(bed: Testbed) -> dict[str, Any]:
    """More bindings are on their way than can be sent in the time there is: it ends all the same, and says so."""
    cluster(bed, 200)
    add_pods(bed, [pod(f"p{number:04}") for number in range(200)])
    with Witness(bed) as witness:
        with Lamina(bed, config=configuration(clientConnection={"qps": 1, "burst": 1})) as scheduler:
            until(lambda: len(scheduler.bindings()) >= 2, 30.0, "something is bound")
            code, took = scheduler.end(STOPS_WITHIN)
        unfinished = [one["msg"] for one in scheduler.said() if "bindings not finished" in one["msg"]]
        time.sleep(1.0)
        bound, told = witness.bound(), len(scheduler.bindings())
    figures = {
        "exit_code": code,
        "stopped_s": round(took, 2),
        "said": unfinished,
        "bound": bound,
        "told": told,
        "complaints": scheduler.complaints(),
    }
    assert (0, []) == (code, scheduler.complaints())
    assert 1 == len(unfinished)
    return figures
