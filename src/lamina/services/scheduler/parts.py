"""The parts of a running scheduler, for whoever has to look at several of them."""

import msgspec

from lamina.clients.kube.transport import KubeClient
from lamina.scheduling.loop.loop import Loop
from lamina.services.intake.doorkeeper import Doorkeeper
from lamina.services.intake.intake import Intake
from lamina.services.scheduler.event_ring import EventRing
from lamina.services.scheduler.host import Host
from lamina.services.scheduler.journal import Journal
from lamina.services.scheduler.metrics import Metrics
from lamina.services.scheduler.observing import Observer
from lamina.services.scheduler.recordings import RecordingWriter


class Parts(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a scheduler consists of."""

    client: KubeClient
    intake: Intake
    loop: Loop
    host: Host
    metrics: Metrics
    journal: Journal
    ring: EventRing
    recordings: RecordingWriter
    observer: Observer | None = None
    door: Doorkeeper | None = None
