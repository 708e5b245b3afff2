"""Kubernetes objects as JSON, decoded as far as Lamina uses them."""
