"""Notifications for the decision process: external events, and that no more jobs or events will come."""

from collections.abc import Callable
from typing import Final

import msgspec

from lamina.simulator.batsim.run_state import BatsimRunState
from lamina.simulator.workloads import Scenario
from lamina.wire.batsim.scheduler_events import NoticeData, NotifyEvent

NO_MORE_JOBS: Final = "no_more_static_job_to_submit"
NO_MORE_EVENTS: Final = "no_more_external_event_to_occur"
NOTICE: Final = -5
"""Event priority of notices: after the scenario's own events of that time."""


class ExternalNotices:
    """Tells the decision process what comes from outside, and when nothing more does."""

    def __init__(self, state: BatsimRunState, scenario: Scenario, request_feed: Callable[[], None]) -> None:
        """Plan the notices of *scenario*."""
        self._state = state
        self._request_feed = request_feed
        self._jobs_until = max((one.at for one in scenario.arrivals), default=0.0)
        lasts = [one.last_event for one in scenario.batsim if one.last_event is not None]
        self._events_until = max(lasts, default=-1.0)
        self._told_jobs = False
        self._told_events = not lasts
        if state.settings.forward_unknown_events:
            for source in scenario.batsim:
                for notice in source.notices:
                    state.environment.at(notice.at, self._notice, notice.data, priority=NOTICE)
        for time in (self._jobs_until, *lasts):
            state.environment.at(time, request_feed, priority=NOTICE)

    @property
    def complete(self) -> bool:
        """Whether all jobs and events of the scenario have come."""
        return self._told_jobs and self._told_events

    def send(self, data: msgspec.Raw) -> None:
        """Add a notification to the next message."""
        self._state.outbox.append(NotifyEvent(timestamp=self._state.now, data=data))

    def arrived(self) -> None:
        """Tell the decision process, once, that all jobs or all external events have come."""
        now = self._state.now
        if not self._told_jobs and now >= self._jobs_until:
            self._told_jobs = True
            self._tell(NO_MORE_JOBS)
        if not self._told_events and now >= self._events_until:
            self._told_events = True
            self._tell(NO_MORE_EVENTS)

    def _tell(self, what: str) -> None:
        self.send(msgspec.Raw(msgspec.json.encode(NoticeData(type=what))))

    def _notice(self, data: msgspec.Raw) -> None:
        self.send(data)
        self._request_feed()
