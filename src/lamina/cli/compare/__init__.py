"""The `lamina compare` command."""
