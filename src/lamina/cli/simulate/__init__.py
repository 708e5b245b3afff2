"""`lamina simulate`: run a scenario and write its results."""
