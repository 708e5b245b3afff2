"""Services, one process each: they watch the cluster, feed the decision loop and perform its commands."""
