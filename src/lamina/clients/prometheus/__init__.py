"""Client for the Prometheus HTTP API: instant and range queries with bounded results."""
