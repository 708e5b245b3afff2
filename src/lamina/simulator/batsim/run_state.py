"""The state of a run that the decider and the actions of its decision process share."""

from dataclasses import dataclass, field

from lamina.scheduling.contract.commands import Bind
from lamina.simulator.batsim.batsim_settings import BatsimSettings
from lamina.simulator.batsim.dynamic_jobs import DynamicJobs
from lamina.simulator.batsim.host_table import HostTable
from lamina.simulator.batsim.job_descriptions import JobDescriptions
from lamina.simulator.batsim.job_table import JobTable, KillRequest
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.engine import Environment
from lamina.wire.batsim.simulator_events import BatsimEvent


@dataclass
class BatsimRunState:
    """What happened so far, and what has to be done."""

    environment: Environment
    cluster: VirtualCluster
    settings: BatsimSettings
    hosts: HostTable
    jobs: JobTable
    descriptions: JobDescriptions
    dynamic: DynamicJobs
    outbox: list[BatsimEvent] = field(default_factory=list)
    """Events for the next message, in order."""
    binds: list[Bind] = field(default_factory=list)
    """Commands for the host."""
    kills: list[KillRequest] = field(default_factory=list)
    """Requests that are not answered yet."""
    calls: int = 0
    """Number of calls that were requested and are still to come."""
    actions: int = 0
    """Number of events of replies whose time is still to come."""
    registering: bool = False
    """Whether the decision process may still register jobs."""
    metadata: dict[str, str] = field(default_factory=dict)
    """Texts for the table of jobs, by job."""

    @property
    def now(self) -> float:
        """The current time in seconds."""
        return self.environment.now
