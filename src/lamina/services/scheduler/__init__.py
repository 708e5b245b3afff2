"""Scheduler service: decides on pods and binds them through the API server."""
