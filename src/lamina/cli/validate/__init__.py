"""The `lamina validate` command."""
