"""Package output."""
