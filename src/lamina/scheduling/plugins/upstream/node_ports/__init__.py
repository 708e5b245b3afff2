"""NodePorts: host ports that pods request, and those in use on each node."""
