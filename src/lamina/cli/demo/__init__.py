"""Package demo."""
