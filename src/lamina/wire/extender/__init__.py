"""Requests and responses of the kube-scheduler extender protocol as JSON."""
