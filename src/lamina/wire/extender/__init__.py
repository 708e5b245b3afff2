"""Package extender."""
