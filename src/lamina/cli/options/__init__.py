"""Package options."""
