"""The Kubernetes API over the network: who we are, requests, watches, writes, events and leases."""
