"""The `lamina simulate` command."""
