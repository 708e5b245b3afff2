"""Batch scheduling: plugins that place many pods at once."""
