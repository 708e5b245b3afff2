"""kube-scheduler's default plugins: same names, same numbers, same words, for Kubernetes 1.36."""
