"""
What nodes are really used for: who tells, and how it becomes an event of the decision core.

    source           the contract: one look at all nodes
    prometheus       node-exporter's numbers, by way of a Prometheus server (`queries`, `matching`)
    metrics_server   the cluster's metrics API, sampled by ourselves (`samples`)
    watch            looks again and again, and puts `UsageReported` into an entrance
    settings         the file that says which of them, and how

Absence of data is never data: a node that cannot be told apart, has too few samples or a clock of its own is left out.
"""

from lamina.services.informers.usage.metrics_server import MetricsServerUsage
from lamina.services.informers.usage.prometheus import PrometheusUsage
from lamina.services.informers.usage.usage_poller import UsagePoller
from lamina.services.informers.usage.usage_source import UsageSource

__all__ = ["MetricsServerUsage", "PrometheusUsage", "UsagePoller", "UsageSource"]
