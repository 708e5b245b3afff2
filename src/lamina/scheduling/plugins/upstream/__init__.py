"""kube-scheduler's default plugins, with the names, numbers and messages of Kubernetes 1.36."""
