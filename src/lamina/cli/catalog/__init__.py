"""The `lamina catalog` commands."""
