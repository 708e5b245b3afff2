"""Scheduler extender: filters and scores nodes for kube-scheduler over HTTP."""
