"""Package runtime."""
