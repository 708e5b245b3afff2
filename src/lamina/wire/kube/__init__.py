"""Kubernetes objects as JSON; only the fields that Lamina uses are decoded."""
