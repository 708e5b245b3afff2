"""``--report`` of `lamina simulate` and `lamina compare`."""
