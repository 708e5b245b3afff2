"""The `lamina demo` command."""
