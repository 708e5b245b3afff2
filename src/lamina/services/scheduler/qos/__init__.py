"""What the scheduler shows and stores of its QoS engine: debug page, metrics, log, and history in the API."""
