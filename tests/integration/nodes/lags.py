"""
How long it takes until the scheduler knows what a node has just pulled, beside what the kubelet tells the cluster.

    pulled            the runtime itself answers that it has the image
    known             the agent's report is in the API server and the scheduler has read it
    in status.images  the kubelet has written it into its node

Looked at every few hundredths of a second from a thread, so that the story goes on meanwhile.
"""

import threading
import time
from typing import Final

from testbed import cri
from tests.integration.nodes.real import RealCluster, reported
from tests.integration.scheduler.live import Lamina

PAUSE: Final = 0.04
GIVE_UP: Final = 120.0
READ: Final = "lamina_node_data_age_seconds_count"
"""Counts the reports that the scheduler has read."""


class Lag(threading.Thread):
    """Follows one pull."""

    def __init__(self, cluster: RealCluster, scheduler: Lamina, node: str, reference: str, digest: str) -> None:
        """Start to follow."""
        super().__init__(daemon=True)
        self._cluster, self._scheduler = cluster, scheduler
        self._node, self._reference, self._digest = node, reference, digest
        self.pulled = self.known = self.in_status = 0.0
        self.start()

    def run(self) -> None:
        """Look until everything has happened."""
        end = time.monotonic() + GIVE_UP
        before = last = 0.0
        in_api = False
        while time.monotonic() < end and not (self.pulled and self.known and self.in_status):
            if not self.pulled and cri.holds(self._cluster.nodes[self._node].socket, self._reference):
                self.pulled = time.monotonic()
            if not self.known:
                before, last = (before, last) if in_api else (last, self._scheduler.metric(READ))
                in_api = in_api or self._digest in reported(self._cluster.bed).get(self._node, ())
                # What was counted before the look that did not show the report yet is not the report.
                if in_api and self._scheduler.metric(READ) > before:
                    self.known = time.monotonic()
            if not self.in_status and self._listed():
                self.in_status = time.monotonic()
            time.sleep(PAUSE)

    def wait_known(self) -> None:
        """Wait until the scheduler knows."""
        self._wait("known")

    def seconds(self) -> tuple[float, float]:
        """From the end of the pull until the scheduler knew, and until the node's status told; waits for both."""
        for what in ("pulled", "known", "in_status"):
            self._wait(what)
        return max(self.known - self.pulled, 0.0), max(self.in_status - self.pulled, 0.0)

    def _wait(self, what: str) -> None:
        while not getattr(self, what):
            if not self.is_alive():
                raise AssertionError(f"{self._reference} on {self._node}: not {what} within {GIVE_UP:.0f} s")
            time.sleep(PAUSE)

    def _listed(self) -> bool:
        images = self._cluster.bed.api("GET", f"/api/v1/nodes/{self._node}")["status"].get("images", ())
        return any(self._reference in image["names"] for image in images)
