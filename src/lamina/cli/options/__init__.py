"""Command-line options and parameter types that several commands share."""
