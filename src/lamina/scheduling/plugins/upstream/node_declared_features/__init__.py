"""NodeDeclaredFeatures: the plugin, and the node fact of declared features."""
