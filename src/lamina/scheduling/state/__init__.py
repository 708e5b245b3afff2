"""Package state."""
