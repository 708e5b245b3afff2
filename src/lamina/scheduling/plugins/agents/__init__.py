"""Scheduling agents: each a small package of plugins with one objective, for the extender and for any profile."""
