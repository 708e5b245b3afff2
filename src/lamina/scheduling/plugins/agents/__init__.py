"""Scheduling agents: packages of plugins with one objective each, for the extender and for any profile."""
