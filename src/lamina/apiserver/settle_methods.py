"""Choice of the settle method for a scheduler's profile."""

from collections.abc import Callable

import msgspec

from lamina.apiserver.scheduler_profiles import COUNTS_EVENTS, ONE_POD_HANDLER, SchedulerProfile
from lamina.apiserver.settling.event_account import EventAccount
from lamina.apiserver.settling.lamina_settling import LAMINA_METRICS, LaminaSettling
from lamina.apiserver.settling.log_settling import LogSettling
from lamina.apiserver.settling.metrics_client import MetricsClient
from lamina.apiserver.settling.metrics_settling import NAMES, MetricsSettling, PreemptionCounting
from lamina.apiserver.settling.pending_pods import PendingPods
from lamina.apiserver.settling.scheduler_log import SchedulerLog
from lamina.apiserver.settling.session_log import SessionLog
from lamina.apiserver.settling.session_settling import SessionSettling
from lamina.apiserver.settling.settle_method import SettleMethod, SignalledWait
from lamina.apiserver.settling.silence_settling import RequestCounter, SilenceSettling
from lamina.apiserver.settling.watch_barriers import WatchBarriers
from lamina.model.errors import InputError
from lamina.simulator.facade.api_state import ApiState

SELECTED_VICTIMS = 37
"""First minor version whose metrics count victims that are being deleted already."""


class ChosenMethod(msgspec.Struct, frozen=True, eq=False):
    """A settle method with what it needs of the process."""

    method: SettleMethod
    read: Callable[[str], None] | None = None
    """Receives each line of the log."""
    begin: Callable[[], None] | None = None
    """Called once, before the scheduler has read anything."""
    client: MetricsClient | None = None


def choose_method(
    profile: SchedulerProfile, state: ApiState, pods: PendingPods, server: RequestCounter, wait: SignalledWait
) -> ChosenMethod:
    """Return the settle method of *profile*; its address of metrics has no placeholders any more. Raises InputError."""
    match profile.settle:
        case "log":
            return _by_log(profile, state, pods, wait)
        case "metrics":
            client, account, method = _by_metrics(profile, state, pods, wait)
            return ChosenMethod(method, None, account.begin, client)
        case "sessions":
            sessions = SessionLog(pods, profile.lines)
            name = profile.barrier or profile.scheduler_name
            settling = SessionSettling(state, pods, sessions, wait, name, profile.silence)
            return ChosenMethod(settling, _waking(sessions.read, wait))
        case "lamina":
            client = MetricsClient(profile.metrics, LAMINA_METRICS)
            return ChosenMethod(LaminaSettling(state, pods, client, wait), None, None, client)
        case "silence":
            return ChosenMethod(SilenceSettling(pods, server, wait, profile.silence))


def _by_log(profile: SchedulerProfile, state: ApiState, pods: PendingPods, wait: SignalledWait) -> ChosenMethod:
    minor = profile.minor
    log = SchedulerLog(pods, async_preemption=minor == 0 or minor >= COUNTS_EVENTS)
    barriers = WatchBarriers(state, pods, log, profile.scheduler_name, bound=0 < minor < ONE_POD_HANDLER)
    read = _waking(log.read, wait)
    if not profile.metrics or 0 < minor < COUNTS_EVENTS:
        return ChosenMethod(LogSettling(pods, log, barriers, wait), read)
    client, account, confirmation = _by_metrics(profile, state, pods, wait)
    return ChosenMethod(LogSettling(pods, log, barriers, wait, confirmation), read, account.begin, client)


def _by_metrics(
    profile: SchedulerProfile, state: ApiState, pods: PendingPods, wait: SignalledWait
) -> tuple[MetricsClient, EventAccount, MetricsSettling]:
    if not profile.metrics:
        raise InputError.one("--settle", f"metrics: the profile {profile.name} has no address of metrics; use silence")
    client = MetricsClient(profile.metrics, NAMES)
    account = EventAccount(state, pods, twice=profile.minor == 0 or profile.minor > COUNTS_EVENTS)
    counting: PreemptionCounting = "selected" if profile.minor >= SELECTED_VICTIMS else "started"
    return client, account, MetricsSettling(pods, account, client, wait, counting)


def _waking(read: Callable[[str], None], wait: SignalledWait) -> Callable[[str], None]:
    def read_and_wake(line: str) -> None:
        read(line)
        wait.wake()

    return read_and_wake
