"""Printing, progress and output files of commands."""
