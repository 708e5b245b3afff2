"""Checks of an installation: what is wrong, and what to do about it."""
