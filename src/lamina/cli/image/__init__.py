"""`lamina image`: print the layers of an image."""
