"""Domain types: pods, nodes, images, layers, and the events and decisions about them."""
