"""Package image."""
