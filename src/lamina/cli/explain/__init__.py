"""Package explain."""
