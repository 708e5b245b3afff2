"""The `lamina explain` command."""
