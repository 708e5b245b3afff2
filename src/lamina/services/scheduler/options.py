"""Options of one scheduler process."""

from typing import Literal

import msgspec

from lamina.clients.kube.access import ApiAccess
from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.registry_config import RegistryConfig
from lamina.scheduling.config.loader import Configuration
from lamina.services.informers.usage.usage_settings import UsageSettings
from lamina.services.scheduler.event_ring import RingLimits
from lamina.services.scheduler.qos.qos_service import QosOptions
from lamina.services.scheduler.recordings import RecordingSettings


class SchedulerOptions(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Checked options of the command line."""

    configuration: Configuration
    access: ApiAccess
    observe: bool = False
    """Decide and log, but bind nothing."""
    leader_elect: bool | None = None
    """Overrides the configuration."""
    host: str = "127.0.0.1"
    port: int = 10259
    """Port of the service's endpoints; 0 means any free port."""
    detail: Literal["brief", "savings", "full"] = "savings"
    seed: int | None = None
    """Seed for ties between nodes of equal score; None: random."""
    rules: RegistryConfig | None = None
    """Which registries may be queried for images; None: none."""
    keyring: Keyring | None = None
    """Credentials for registries."""
    registry_deadline: float = 2.0
    """Longest time in seconds that a pod waits for a registry."""
    usage: UsageSettings | None = None
    """Source of measured node usage; None: plugins that need it give no score."""
    record: RecordingSettings | None = None
    """Where recordings are written; None: only on request at ``/debug/events``."""
    ring: RingLimits = RingLimits()
    """Limits of the event ring."""
    qos: QosOptions = QosOptions()
    """What is shown and stored of the measurements of QosAware."""
    identity: str = ""
    """Name of this instance in the lease; empty: host name and a random number."""
