"""Image layers per node: the image catalog, the node × layer index, and the inventory that joins them."""
