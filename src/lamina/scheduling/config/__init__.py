"""KubeSchedulerConfiguration: parsed, verified, merged with the defaults, and turned into profiles."""
