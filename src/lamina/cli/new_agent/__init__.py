"""Package new_agent."""
