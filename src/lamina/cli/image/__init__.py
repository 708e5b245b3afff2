"""The `lamina image` command."""
