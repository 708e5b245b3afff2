"""Lamina places Kubernetes pods where their container layers already are."""
