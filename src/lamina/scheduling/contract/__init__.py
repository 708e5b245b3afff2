"""The interface for plugin authors: extension points, statuses, commands and the plugin registry."""
