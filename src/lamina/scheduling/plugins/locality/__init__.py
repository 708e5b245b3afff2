"""Plugins that score nodes by the images and layers they already hold."""
