"""How Lamina talks to other programs: the Kubernetes API server, and later registries and container runtimes."""
