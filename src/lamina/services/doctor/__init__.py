"""Looks whether everything is as Lamina needs it, and says what to do where it is not."""
