"""NodePorts: ports of nodes that pods ask for, and which of them are taken."""
