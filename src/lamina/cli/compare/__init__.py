"""Package compare."""
