"""Traces and recordings: the records of a run, live or simulated, and their file formats."""
