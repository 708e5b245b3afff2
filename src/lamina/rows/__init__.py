"""Building blocks for data with one entry per node row: a journal of changed rows, and growable arrays."""
