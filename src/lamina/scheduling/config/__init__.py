"""KubeSchedulerConfiguration: read, checked, merged with the defaults, and turned into profiles."""
