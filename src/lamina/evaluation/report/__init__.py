"""The report: one HTML file about a run or a comparison, which works without a network."""
