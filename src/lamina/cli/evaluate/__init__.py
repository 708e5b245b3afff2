"""The `lamina evaluate` command."""
