"""How one scheduler process is to run."""

from typing import Literal

import msgspec

from lamina.clients.kube.access import ApiAccess
from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.registry_config import RegistryConfig
from lamina.scheduling.config.loader import Configuration
from lamina.services.informers.usage.usage_settings import UsageSettings
from lamina.services.scheduler.event_ring import RingLimits
from lamina.services.scheduler.recordings import RecordingSettings


class SchedulerOptions(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What the command line said, checked."""

    configuration: Configuration
    access: ApiAccess
    observe: bool = False
    """Decide and write down, and bind nothing."""
    leader_elect: bool | None = None
    """Overrides the configuration."""
    host: str = "127.0.0.1"
    port: int = 10259
    """Of the service's own pages; 0 takes any that is free."""
    detail: Literal["brief", "savings", "full"] = "savings"
    seed: int | None = None
    """Decides between nodes of equal score; None: chance does."""
    rules: RegistryConfig | None = None
    """Which registries may be asked what an image consists of; None: none, ever."""
    keyring: Keyring | None = None
    """Who we are to them."""
    registry_deadline: float = 2.0
    """Seconds that a pod waits for such an answer at most."""
    usage: UsageSettings | None = None
    """Who is asked what nodes are really used for; None: nobody, and plugins that go by it have nothing to say."""
    record: RecordingSettings | None = None
    """Where recordings are written; None: only what is asked for at ``/debug/events``."""
    ring: RingLimits = RingLimits()
    """How much is remembered of what the loop was fed."""
    identity: str = ""
    """Who this instance is among others; empty: host name and a random number."""
