"""Runtimes that are read over plain CRI v1."""
