"""Requests and answers of the kube-scheduler extender protocol as JSON."""
