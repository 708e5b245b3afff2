"""Who holds what: the image catalogue, the node × layer index, and the inventory that joins them."""
