"""Package custom_resources."""
