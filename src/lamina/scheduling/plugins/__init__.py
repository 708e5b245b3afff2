"""The policies: kube-scheduler's own under its names, and layer locality."""
