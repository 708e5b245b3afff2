"""All retold cases, and those that need neither preemption nor volumes."""

from tests.upstream_cases import affinity_cases, node_cases, preemption_cases, spread_cases, volume_cases
from tests.upstream_cases.case_model import UpstreamCase


def plain_cases() -> list[UpstreamCase]:
    """Return the cases about other pods and about nodes."""
    return [*affinity_cases.cases(), *spread_cases.cases(), *node_cases.cases()]


def all_cases() -> list[UpstreamCase]:
    """Return all cases."""
    volumes = [*volume_cases.cases(), *volume_cases.preemption_cases()]
    return [*plain_cases(), *preemption_cases.cases(), *volumes]
