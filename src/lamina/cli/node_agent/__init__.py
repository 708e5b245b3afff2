"""Package node_agent."""
