"""The `lamina apiserver` command."""
