"""Kubernetes API client: credentials, requests, reflectors, pod writes, events and leader election."""
