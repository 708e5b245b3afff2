"""Registry client: resolves image references to images and layers."""
