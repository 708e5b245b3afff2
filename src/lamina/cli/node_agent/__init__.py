"""`lamina node-agent`: inventory the layers of this node."""
