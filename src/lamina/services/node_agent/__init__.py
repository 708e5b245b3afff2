"""Node agent: reports the images and layers that a node's runtime holds."""
