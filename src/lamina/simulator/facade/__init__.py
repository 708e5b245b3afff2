"""A Kubernetes API in front of the simulator: stored objects, their semantics and virtual time, without sockets."""
