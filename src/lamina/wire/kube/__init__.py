"""Package kube."""
