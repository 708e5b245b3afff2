"""The `lamina new-agent` command."""
