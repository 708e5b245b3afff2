"""Published placement formulas for comparison; not meant for production."""
