"""PodTopologySpread: spread rules of a pod, pod counts per domain, and the plugin."""
