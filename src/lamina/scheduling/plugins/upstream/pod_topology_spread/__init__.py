"""PodTopologySpread: rules of a pod, pods counted per domain, and the plugin that filters and ranks by them."""
