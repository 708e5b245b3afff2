"""
Decider of a run whose schedulers are behind the Kubernetes API.

    feed(events) --> store (watch events) --> settle: schedulers read and write --> commands

Time stands still while the schedulers decide. `settle` is a function of the caller: it lets clients read and write
until all attached schedulers have settled. It is called only if the store has changed since it was called last.
"""

from collections.abc import Callable, Collection, Sequence

from lamina.model.events import Event, TimePassed
from lamina.scheduling.contract.commands import Command
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.cluster_writer import ClusterWriter
from lamina.simulator.facade.decision_log import DecisionLogWriter, FeedInputs
from lamina.simulator.facade.store_writer import StoreWriter


class FacadeDecider:
    """Lets clients of the API decide."""

    def __init__(
        self,
        state: ApiState,
        reader: StoreWriter,
        writer: ClusterWriter,
        settle: Callable[[], None],
        names: Collection[str],
        log: DecisionLogWriter | None = None,
    ) -> None:
        """Decide for pods with scheduler *names*; write all inputs of clients to *log*."""
        self.names: Collection[str] = names
        self.attempts = 0
        """Number of decisions of the last feed."""
        self.trying = False
        """Always False: schedulers behind the API keep their own timers, in real time."""
        self.asked_until: float | None = None
        self._state = state
        self._reader = reader
        self._writer = writer
        self._settle = settle
        self._log = log
        self._settled = 0
        self._feeds = 0
        self._now = 0.0

    def feed(self, *events: Event) -> Sequence[Command]:
        """Show the events to the clients, let them settle, and return what they decided."""
        for event in events:
            if isinstance(event, TimePassed):
                self._now = event.now
        self._reader.apply(events)
        self._writer.begin_feed()
        store = self._state.store
        if store.revision != self._settled:
            self._settle()
            self._settled = store.revision
        commands, inputs = self._writer.take()
        self._feeds += 1
        if self._log is not None and inputs:
            self._log.write(FeedInputs(self._feeds, self._now, tuple(inputs)))
        self.attempts = len(commands)
        return commands
