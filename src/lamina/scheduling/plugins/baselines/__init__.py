"""Published placement formulas, to compare with. Nobody needs to run a cluster on them."""
