"""The node agent: what a runtime holds, written down for the cluster."""
