"""Package catalog."""
