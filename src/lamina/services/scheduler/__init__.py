"""The scheduler: binds pods through the API server."""
