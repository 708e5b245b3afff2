"""Plugins for batch jobs: they decide about many pods at once."""
