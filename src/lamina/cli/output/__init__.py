"""Printing that several commands share: tables, progress bars, live views."""
