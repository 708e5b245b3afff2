"""`lamina compare`: run a scenario under several profiles and compare the results."""
