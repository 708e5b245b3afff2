"""What is queued, what is believed, and one decision after another: feed it events, perform its commands."""
