"""
Two schedulers of which one leads: it is stopped in its tracks, goes on, and later is asked to end.

Who has bound a pod is known from the schedulers' logs; whether it was bound twice, from the API server.
"""

import time
from typing import Any, Final, NamedTuple

from testbed import Testbed
from tests.integration.scheduler.live import Lamina, configuration, install, until
from tests.integration.scheduler.truth import Arrivals, Witness, overcommitted, pod


class Terms(NamedTuple):
    """Seconds, as in the configuration; the defaults are kube-scheduler's."""

    lease: int = 15
    renew: int = 10
    retry: int = 2

    def election(self) -> dict[str, Any]:
        """The part of the configuration that says so."""
        return {
            "leaderElect": True,
            "resourceName": "lamina-scheduler",
            "resourceNamespace": "lamina-system",
            "leaseDuration": f"{self.lease}s",
            "renewDeadline": f"{self.renew}s",
            "retryPeriod": f"{self.retry}s",
        }


EACH: Final = 8


def led(bed: Testbed, terms: Terms, *, paused_for: float, per_second: float) -> dict[str, Any]:
    """Tell the story; return its figures."""
    # Some seconds of quiet, the pause, the hand-over back to normal, and the clean one at the end.
    after = float(terms.lease)
    over = 5.0 + paused_for + after + terms.lease
    pods = int(over * per_second)
    install(bed)
    bed.add_nodes([{"name": f"n{number:03}", "cpu": f"{EACH * 100}m"} for number in range(-(-(pods + EACH) // EACH))])
    first = Lamina(bed, "first", config=configuration(leaderElection=terms.election()))
    second = Lamina(bed, "second", config=configuration(leaderElection=terms.election()))
    with Witness(bed) as witness, first:
        until(lambda: leads(first), 20.0, "the first leads")
        with second:
            arrivals = Arrivals(bed, [pod(f"p{number:04}") for number in range(pods)], over=over)
            time.sleep(5.0)
            paused_at = time.time()
            first.pause()
            time.sleep(paused_for)
            resumed_at = time.time()
            first.resume()
            time.sleep(after)
            assert leads(second)
            assert not leads(first)
            asked_at = time.time()
            code, stopped = second.end(15.0)
            arrivals.wait(over + 60.0)
            until(lambda: witness.bound() == pods, 60.0, f"{pods} pods bound")
            differences = first.differences()
    ours, theirs = first.bindings(), second.bindings()
    takeover = min(at for at, _ in theirs)
    before = max(at for at, _ in ours if at < resumed_at)
    last_of_second = max(at for at, _ in theirs)
    again = min(at for at, _ in ours if at > last_of_second)
    # What the first binds between its waking up and the second's end it binds without leading.
    unled = [name for at, name in ours if resumed_at <= at < asked_at]
    twice = {name for _, name in ours} & {name for _, name in theirs}
    figures = {
        "pods": pods,
        "bound_by_first": len(ours),
        "bound_by_second": len(theirs),
        "bound_by_both": len(twice),
        "bound_without_leading": len(unled),
        "failed_bindings": sum(one["msg"] == "bind failed" for one in (*first.said(), *second.said())),
        "paused_s": paused_for,
        "handover_after_pause_s": round(takeover - before, 2),
        "taken_over_after_pause_began_s": round(takeover - paused_at, 2),
        "handover_clean_s": round(again - last_of_second, 2),
        "handover_clean_from_request_s": round(again - asked_at, 2),
        "moved": len(witness.moved()),
        "overcommitted": overcommitted(bed),
        "differences": len(differences),
        "exit_code": code,
        "stopped_s": round(stopped, 2),
    }
    assert [] == first.complaints() + second.complaints()
    assert ([], set(), []) == (unled, twice, witness.moved())
    assert [] == figures["overcommitted"], figures
    assert [] == differences, differences[:5]
    assert 0 == code
    # A whole term from the last renewal that was seen, the longest wait between two looks, and a slow machine.
    assert takeover - paused_at <= terms.lease + 2.2 * terms.retry + 5.0
    return figures


def leads(scheduler: Lamina) -> bool:
    """Whether a scheduler believes that it leads."""
    return scheduler.metric("leader_election_master_status{") == 1.0
