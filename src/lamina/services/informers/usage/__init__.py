"""
Measured usage of nodes: its sources, and how it becomes an event of the decision loop.

    usage_source     the interface of a source: one measurement of all nodes
    prometheus       node-exporter's metrics from a Prometheus server (`queries`, `series_match`)
    metrics_server   the cluster's metrics API, sampled in this process (`samples`)
    usage_poller     polls a source and puts `UsageReported` events into the queue
    usage_settings   the settings file that chooses and configures a source

Missing data is never guessed. A node is left out if its series cannot be matched, its samples are too few, or its clock
differs too much.
"""

from lamina.services.informers.usage.metrics_server import MetricsServerUsage
from lamina.services.informers.usage.prometheus import PrometheusUsage
from lamina.services.informers.usage.usage_poller import UsagePoller
from lamina.services.informers.usage.usage_source import UsageSource

__all__ = ["MetricsServerUsage", "PrometheusUsage", "UsagePoller", "UsageSource"]
