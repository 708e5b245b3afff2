"""Backfill: later jobs start early where they do not delay jobs with a reservation."""
