"""Package simulate."""
