"""What a plugin author programs against: extension points, statuses, commands, the plugin registry."""
