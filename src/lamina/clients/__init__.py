"""Clients for external services: the Kubernetes API server, image registries, container runtimes and Prometheus."""
