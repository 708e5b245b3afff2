"""Runs the plugins of a profile: evaluations of pod shapes, their caches, and explanations."""
