"""Plugins: kube-scheduler's under their own names, layer locality, scheduling agents and baselines."""
