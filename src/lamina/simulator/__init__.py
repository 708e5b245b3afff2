"""Simulator: a cluster in virtual time, scheduled by the same decision loop as a real cluster."""
