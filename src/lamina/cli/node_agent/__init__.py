"""The `lamina node-agent` command."""
