"""`lamina new-agent`: write the project of a new scheduling agent."""
