"""Lamina as the decision process of Batsim: a mirrored cluster, in which a scheduler of Kubernetes places the jobs."""
