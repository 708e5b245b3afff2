"""The API server process: the façade of the simulator behind HTTP, with TLS, a kubeconfig and child processes."""
