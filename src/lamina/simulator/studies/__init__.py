"""Designed studies: factors of a scenario, the points of their design, and one scenario for each point. Runs nothing."""
