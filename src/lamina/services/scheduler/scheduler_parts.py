"""The parts of a running scheduler, for the endpoints."""

import msgspec

from lamina.clients.kube.transport import KubeClient
from lamina.scheduling.loop.loop import Loop
from lamina.services.informers.image_gate import ImageGate
from lamina.services.informers.informer_set import InformerSet
from lamina.services.scheduler.decision_journal import DecisionJournal
from lamina.services.scheduler.event_ring import EventRing
from lamina.services.scheduler.metrics import SchedulerMetrics
from lamina.services.scheduler.recordings import RecordingWriter
from lamina.services.scheduler.scheduler_host import SchedulerHost
from lamina.services.scheduler.shadow_executor import ShadowExecutor


class SchedulerParts(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The parts of a running scheduler."""

    client: KubeClient
    informers: InformerSet
    loop: Loop
    host: SchedulerHost
    metrics: SchedulerMetrics
    journal: DecisionJournal
    ring: EventRing
    recordings: RecordingWriter
    shadow: ShadowExecutor | None = None
    image_gate: ImageGate | None = None
