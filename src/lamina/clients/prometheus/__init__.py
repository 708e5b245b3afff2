"""A Prometheus server over the network: questions in PromQL, bounded answers."""
